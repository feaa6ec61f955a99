internal import CLinux
internal import Glibc

/// The present resource usage of the process, by the kernel's figures; 0 if the kernel gives none.
package struct ProcessFigures: Sendable {
    package var cpuSeconds = 0.0
    package var residentBytes = 0
    package var virtualBytes = 0
    package var descriptors = 0
    package var maximumDescriptors: UInt64 = 0

    package init() {}

    package static func now() -> ProcessFigures {
        var figures = ProcessFigures()
        var time = timespec()
        if unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 {
            figures.cpuSeconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        if let text = try? SystemFile.read("/proc/self/statm", limit: 256) {
            let pages = String(decoding: text, as: UTF8.self).split(separator: " ").prefix(2).compactMap { Int($0) }
            let size = sysconf(Int32(_SC_PAGESIZE))
            if pages.count == 2 { (figures.virtualBytes, figures.residentBytes) = (pages[0] * size, pages[1] * size) }
        }
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            figures.maximumDescriptors = UInt64(limit.rlim_cur)
        }
        if let folder = unsafe opendir("/proc/self/fd") {
            while unsafe readdir(folder) != nil { figures.descriptors += 1 }
            unsafe closedir(folder)
            // Not counted: the descriptor of this listing, and the entries "." and "..".
            figures.descriptors = max(0, figures.descriptors - 3)
        }
        return figures
    }
}
