"""The programs that the bench analyses: how each is built, where its bitcode is then, and what is asked of its analysis."""

from dataclasses import dataclass, field

COMPILE = "-g -O0 -Xclang -disable-O0-optnone -flto=full -fno-discard-value-names -w"
LINK = "-fuse-ld=lld-19 -Wl,--save-temps=preopt -Wl,--lto-O0"
ENVIRONMENT = f"CC=clang-19 CXX=clang++-19 CFLAGS='{COMPILE}' CXXFLAGS='{COMPILE}' LDFLAGS='{LINK}'"
CLANG = f"clang-19 {COMPILE} {LINK}"


@dataclass
class Program:
    """A program of Debian's archive."""

    package: str
    # Makes the bitcode, run in the folder of the sources; `{libraries}` is where `needs` are unpacked.
    build: str
    # The bitcode, relative to that folder.
    bitcode: str
    # Options of the analysis; `{lists}` is the folder of the bench's own lists.
    options: list = field(default_factory=list)
    # Seconds and megabytes that one analysis may take; no bar where they are None.
    seconds: float | None = 10
    megabytes: int | None = None
    # Packages with headers and libraries to build against, unpacked beside the sources and not installed.
    needs: list = field(default_factory=list)
    # Without --fields, and with.
    modes: tuple = ("", "told apart")
    # Whether it is only analysed when named: building or analysing it takes minutes.
    on_request: bool = False


PROGRAMS = {
    # Port scans, from packets by libpcap.
    "scanlogd": Program("scanlogd", f"{CLANG} scanlogd.c in_pcap.c -lpcap -o scanlogd.x", "scanlogd.x.0.0.preopt.bc"),
    # UDP over a TCP connection; it reads that by `read`.
    "udptunnel": Program(
        "udptunnel",
        f"{CLANG} -std=gnu89 -DSIZEOF_SHORT=2 udptunnel.c host2ip.c -Wl,--unresolved-symbols=ignore-all -o udptunnel.x",
        "udptunnel.x.0.0.preopt.bc",
        ["--receive", "read"],
    ),
    # Pairs of Ethernet and IP addresses, from captures too. Its configure script is from 2000 and knows no Linux of today.
    "arpwatch": Program(
        "arpwatch",
        "cp addresses.h.in addresses.h && sed -e 's/.*/char version[] = \"&\";/' VERSION > version.c && "
        f"{CLANG} -std=gnu89 -I. -Ilbl -Ilinux-include -Dlint -DDEBUG -DHAVE_BCOPY -DHAVE_MEMORY_H -DHAVE_FCNTL_H"
        " -DHAVE_SIGACTION -DHAVE_DN_SKIPNAME -D_getshort=ns_get16 -DTIME_WITH_SYS_TIME -DDECLWAITSTATUS=int"
        " -DRETSIGTYPE=void -DRETSIGVAL= '-DARPDIR=\"/var/lib/arpwatch\"' '-DPATH_SENDMAIL=\"/usr/lib/sendmail\"'"
        " arpwatch.c db.c dns.c ec.c file.c intoa.c machdep.c util.c report.c setsignal.c version.c"
        " -lpcap -lresolv -o arpwatch.x",
        "arpwatch.x.0.0.preopt.bc",
    ),
    # Passive fingerprints of hosts, from captures too.
    "p0f": Program(
        "p0f",
        f"{CLANG} -I. '-DVERSION=\"3\"' p0f.c api.c process.c fp_tcp.c fp_mtu.c fp_http.c readfp.c -lpcap -o p0f.x",
        "p0f.x.0.0.preopt.bc",
    ),
    # A load balancer.
    "pen": Program("pen", f"{ENVIRONMENT} ./configure --without-ssl && make", "pen.0.0.preopt.bc"),
    "softflowd": Program(
        "softflowd", f"autoreconf -fi && {ENVIRONMENT} ./configure && make", "softflowd.0.0.preopt.bc"
    ),
    "darkstat": Program("darkstat", f"{ENVIRONMENT} ./configure && make", "darkstat.0.0.preopt.bc"),
    # A gateway of virtual private networks. Plugins and libraries of its options are left out.
    "openvpn": Program(
        "openvpn",
        f"{ENVIRONMENT} LIBCAPNG_CFLAGS=-I{{libraries}}/usr/include"
        " LIBCAPNG_LIBS='-L{libraries}/usr/lib/x86_64-linux-gnu -lcap-ng' ./configure --disable-lzo --disable-lz4"
        " --disable-dco --disable-plugins --disable-pkcs11 && make -C include && make -C src/compat && make -C src/openvpn",
        "src/openvpn/openvpn.0.0.preopt.bc",
        ["--functions", "{lists}/openvpn.list"],
        seconds=60,
        modes=("",),
        needs=["libcap-ng-dev", "libcap-ng0"],
    ),
    # A balancer and proxy of TCP and HTTP.
    "haproxy": Program(
        "haproxy",
        f"make TARGET=linux-glibc CC=clang-19 CPU_CFLAGS=-O0 DEBUG_CFLAGS='{COMPILE}' LDFLAGS='{LINK}' haproxy",
        "haproxy.0.0.preopt.bc",
        ["--library", "{lists}/haproxy.list", "--loop", "run_poll_loop"],
        seconds=300,
        megabytes=8192,
        modes=("",),
        on_request=True,
    ),
}
