extension StatusPage {
    /// The page's style sheet.
    static let style: HTML = """
        :root {
          --ground: #fbfaf8; --card: #ffffff; --ink: #1d1f23; --quiet: #5d636d; --line: #e4e2dd;
          --good: #17794a; --warn: #8f5f00; --bad: #b3261e; --bar: #3a5a8c; --empty: #e9e7e2; --stayed: #8d929c; --tone: var(--good);
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #14161a; --card: #1c1f25; --ink: #eceae6; --quiet: #a2a8b3; --line: #2c3038;
            --good: #5cc98f; --warn: #e3b04b; --bad: #ff8a80; --bar: #8fb0e6; --empty: #2c3038; --stayed: #6b7280;
          }
        }
        .degraded, .starting, .stopping { --tone: var(--warn); }
        .down { --tone: var(--bad); }
        * { box-sizing: border-box; margin: 0; }
        body { background: var(--ground); color: var(--ink); font: 1.0625rem/1.5 system-ui, -apple-system, "Segoe UI",
          Roboto, "Noto Sans", sans-serif; overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
        main { max-width: 64rem; margin: 0 auto; padding: clamp(1.25rem, 4vw, 3rem) clamp(1rem, 4vw, 2.5rem); }
        header { border-left: .375rem solid var(--tone); padding: .25rem 0 .25rem clamp(1rem, 3vw, 1.75rem); }
        .name { color: var(--quiet); font-size: .9375rem; }
        .name span { margin-left: .75rem; }
        a { color: inherit; }
        h1 { color: var(--tone); font-size: clamp(1.75rem, 5.5vw, 3rem); line-height: 1.15; letter-spacing: -.02em;
          font-weight: 650; margin: .25rem 0 .5rem; text-wrap: balance; }
        .remarks { margin: 0.75rem 0 0; padding-left: 1.25rem; color: var(--warn); max-width: 44rem; }
        .why { font-size: clamp(1.0625rem, 2vw, 1.25rem); max-width: 44rem; }
        .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: 1.25rem;
          margin: clamp(1.75rem, 4vw, 2.75rem) 0; }
        .figures div { display: flex; flex-direction: column-reverse; justify-content: flex-end; }
        dd { font-size: clamp(1.5rem, 3.5vw, 2.125rem); font-weight: 600; letter-spacing: -.01em;
          font-variant-numeric: tabular-nums; line-height: 1.2; white-space: nowrap; }
        dt { color: var(--quiet); font-size: .9375rem; line-height: 1.35; }
        section { background: var(--card); border: 1px solid var(--line); border-radius: .75rem;
          padding: clamp(1rem, 3vw, 1.5rem); margin-top: 1.25rem; min-width: 0; }
        h2 { font-size: 1.0625rem; font-weight: 650; margin-bottom: .75rem; }
        .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 0 1.25rem; }
        ul { list-style: none; padding: 0; }
        summary { cursor: pointer; }
        summary h3 { display: inline; }
        details.group > * + * { margin-top: .75rem; }
        .group + .group { border-top: 1px solid var(--line); margin-top: 1.25rem; padding-top: 1.25rem; }
        details.group + details.group { margin-top: .75rem; padding-top: .75rem; }
        h3 { font-size: 1rem; font-weight: 650; margin-bottom: .75rem; }
        h3 span { color: var(--quiet); font-weight: 400; font-size: .9375rem; margin-left: .5rem; }
        /* A state that does not fit beside its server goes below it. */
        .servers li { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .75rem; align-items: baseline;
          padding: .75rem 0; border-top: 1px solid var(--line); }
        .servers li:first-child { border-top: 0; padding-top: 0; }
        .servers li:last-child { padding-bottom: 0; }
        .server { font-weight: 700; font-variant-numeric: tabular-nums; }
        .way, .facts, .quiet, footer { color: var(--quiet); }
        .facts, .failure, .quiet { font-size: .9375rem; }
        .way, .servers .facts, .failure, .trips { flex-basis: 100%; }
        .state { font-weight: 600; white-space: nowrap; }
        .state::before { content: ""; display: inline-block; width: .625rem; height: .625rem; border-radius: 50%;
          margin-right: .5rem; background: currentColor; }
        .good { color: var(--good); }
        .warn { color: var(--warn); }
        .bad { color: var(--bad); }
        .idle { color: var(--quiet); }
        .servers + .quiet { margin-top: .75rem; }
        svg { display: block; width: 100%; fill: var(--bar); }
        .chart { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0 .5rem; margin: 1rem 0 .75rem; }
        .columns { height: 9.6rem; }
        .scale { display: flex; flex-direction: column; justify-content: space-between; height: 9rem; margin-top: -.5rem;
          text-align: right; color: var(--quiet); font-size: .8125rem; line-height: 1rem; white-space: nowrap;
          font-variant-numeric: tabular-nums; }
        .chart .axis { grid-column: 2; margin-bottom: 0; }
        .grid { fill: none; stroke: var(--line); vector-effect: non-scaling-stroke; }
        .parts + .quiet { margin: .5rem 0; }
        .wide { overflow-x: auto; margin-top: .5rem; }
        table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums; text-align: right; }
        th, td { padding: .125rem .5rem; border-top: 1px solid var(--line); overflow-wrap: normal; }
        td, tbody th { white-space: nowrap; font-weight: 400; }
        .bars { height: 8rem; margin-top: 1rem; border-bottom: 1px solid var(--quiet); }
        .meter { height: .625rem; border-radius: .3125rem; margin: .5rem 0 1rem; }
        .empty { fill: var(--empty); }
        .stack { height: 1.25rem; border-radius: .375rem; margin-bottom: .75rem; }
        .parts { display: flex; flex-wrap: wrap; gap: .375rem 1.5rem; }
        .parts b { font-variant-numeric: tabular-nums; }
        .parts span { color: var(--quiet); margin-left: .25rem; }
        .parts li::before { content: ""; display: inline-block; width: .75rem; height: .75rem; border-radius: .1875rem;
          margin-right: .5rem; background: var(--part); }
        .clear { --part: var(--warn); fill: var(--warn); }
        .encrypted { --part: var(--good); fill: var(--good); }
        .loopback { --part: var(--bar); fill: var(--bar); }
        .stayed { --part: var(--stayed); fill: var(--stayed); }
        h3 em { font-style: normal; font-size: .8125rem; font-weight: 600; color: var(--part); white-space: nowrap;
          border: 1px solid currentColor; border-radius: 1rem; padding: .0625rem .5rem; margin-left: .375rem; }
        .trips { display: flex; flex-wrap: wrap; align-items: end; gap: .25rem 1rem; }
        .spark { width: min(100%, 20rem); height: 2rem; margin-top: .5rem; border-bottom: 1px solid var(--line); }
        rect.bad, path.bad { fill: var(--bad); }
        .parts .bad { --part: var(--bad); color: inherit; }
        .axis { display: flex; justify-content: space-between; color: var(--quiet); font-size: .8125rem;
          font-variant-numeric: tabular-nums; margin: .25rem 0 .75rem; }
        .reasons { margin-top: .75rem; }
        .reasons .meter { margin: .25rem 0 .75rem; }
        footer { font-size: .9375rem; margin-top: 2rem; }
        """
}
