/* A variable that is only received from, asked and closed is a handle; one that is looked at is not.
 *
 * expect device_in: persistent
 * expect errors: top-level
 */
typedef struct pcap pcap_t;
struct pcap_pkthdr;
const unsigned char *pcap_next(pcap_t *, struct pcap_pkthdr *);
pcap_t *pcap_open_live(const char *, int, int, int, char *);
int pcap_fileno(pcap_t *);
char *pcap_geterr(pcap_t *);
void pcap_close(pcap_t *);
int puts(const char *);
pcap_t *device_in;
int errors;

int main(int argc, char **argv) {
    char error[256], header[32];
    device_in = pcap_open_live(argv[1], 100, 0, 10, error);
    errors = argc > 2;
    while (pcap_next(device_in, (struct pcap_pkthdr *)header))
        if (errors && pcap_fileno(device_in) < 0) puts(pcap_geterr(device_in));
    pcap_close(device_in);
}
