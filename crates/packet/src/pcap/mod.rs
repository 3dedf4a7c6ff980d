//! Capture files: pcap and pcapng, plain, gzip or zstd, in and out.
