// Asks a DNS server and times each answer: at a given rate on an absolute schedule, where a late query's wait counts, or in a
// closed loop that keeps a window full. Over UDP, over TCP with one query a connection, over TCP with many on one, and over TCP
// with one after the other on each of many.
// Prints one JSON object.
#include <pthread.h>
#include <sys/prctl.h>

#include "load.h"

static void (*run)(struct load *);

static void *run_one(void *load) {
    run(load);
    return NULL;
}

static void print_latency(const char *name, const struct histogram *of) {
    printf(", \"%s\": {\"count\": %llu, \"mean\": %.2f, \"p50\": %.2f, \"p90\": %.2f, \"p99\": %.2f, \"p999\": %.2f}", name,
           (unsigned long long)of->count, of->count ? (double)of->sum / (double)of->count / 1e3 : 0, quantile(of, 0.5) / 1e3,
           quantile(of, 0.9) / 1e3, quantile(of, 0.99) / 1e3, quantile(of, 0.999) / 1e3);
}

static void report(const struct load *all) {
    double span = (all->limit ? all->elapsed : all->seconds) - all->growing;
    printf("{\"sent\": %llu, \"answered\": %llu, \"lost\": %llu, \"wrong\": %llu, \"reconnects\": %llu, \"seconds\": %.4f, "
           "\"rate\": %.1f", (unsigned long long)all->sent, (unsigned long long)all->answered,
           (unsigned long long)all->lost, (unsigned long long)all->wrong, (unsigned long long)all->reconnects, all->elapsed,
           (double)(all->answered_in_time - all->answered_before) / span);
    print_latency("known", &all->known);
    print_latency("new", &all->unknown);
    puts("}");
}

int main(int count, char **arguments) {
    if (count < 3) {
        fputs("load --to ADDRESS:PORT --seconds S (--rate N | --window N) [--over udp|connections|clients|pipeline]\n"
              "     [--names FILE [--in-order] [--zipf EXPONENT --new-percent P]] [--new NUMBER] [--type a|aaaa|both]\n"
              "     [--threads N] [--limit QUERIES] [--spin]\n", stderr);
        return 64;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    const char *over = option(arguments, "--over", "udp");
    run = strcmp(over, "connections") == 0 ? run_connections
        : strcmp(over, "clients") == 0     ? run_clients
        : strcmp(over, "pipeline") == 0    ? run_pipeline
                                           : run_datagrams;
    unsigned threads = (unsigned)atoi(option(arguments, "--threads", "1"));
    require(threads >= 1 && threads <= 64, "--threads is from 1 to 64");
    struct load one = {
        .server = endpoint(option(arguments, "--to", NULL)),
        .questions = read_questions(arguments),
        .rate = atof(option(arguments, "--rate", "0")) / threads,
        .window = ((unsigned)atoi(option(arguments, "--window", "1")) + threads - 1) / threads,
        .limit = strtoull(option(arguments, "--limit", "0"), NULL, 10) / threads,
        .seconds = atof(option(arguments, "--seconds", "1")),
        .spin = flag(arguments, "--spin"),
    };
    struct load *loads = calloc(threads, sizeof *loads), *all = calloc(1, sizeof *all);
    pthread_t *running = calloc(threads, sizeof *running);
    require(loads && all && running, "memory");
    for (unsigned thread = 0; thread < threads; thread++) {
        loads[thread] = one;
        loads[thread].questions = share_of(&one.questions, thread);
        require(pthread_create(&running[thread], NULL, run_one, &loads[thread]) == 0, "thread");
    }
    all->seconds = one.seconds;
    all->limit = one.limit;
    for (unsigned thread = 0; thread < threads; thread++) {
        pthread_join(running[thread], NULL);
        const struct load *done = &loads[thread];
        all->sent += done->sent;
        all->answered += done->answered;
        all->answered_in_time += done->answered_in_time;
        all->answered_before += done->answered_before;
        all->lost += done->lost;
        all->wrong += done->wrong;
        all->reconnects += done->reconnects;
        if (done->elapsed > all->elapsed) all->elapsed = done->elapsed;
        if (done->growing > all->growing) all->growing = done->growing;
        merge(&all->known, &done->known);
        merge(&all->unknown, &done->unknown);
    }
    report(all);
    return 0;
}
