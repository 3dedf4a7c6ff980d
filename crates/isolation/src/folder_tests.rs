//! Quotas under the kernel's rule for nested cgroups of v1, in plain files, of which each write is checked by that rule.

use std::path::PathBuf;

use super::*;

/// Nested cgroups of v1, the outermost first.
struct Nested(tempfile::TempDir);

impl Nested {
    fn new(quotas: &[(i64, u64)]) -> Nested {
        let nested = Nested(tempfile::tempdir().unwrap());
        for (number, (quota, period)) in quotas.iter().enumerate() {
            let folder = nested.folder(number);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
            fs::write(folder.join("cpu.cfs_period_us"), period.to_string()).unwrap();
        }
        nested
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.0.path().join(["mount", "a", "b", "c"][..=number].iter().collect::<PathBuf>())
    }

    /// Write a value as the kernel does: if then each cgroup has no larger part than the one above it.
    fn put(&self, file: &Path, value: &str) -> Result<(), QuotaError> {
        let before = fs::read_to_string(file).unwrap();
        fs::write(file, value).unwrap();
        let mut has = f64::INFINITY;
        for folder in (0..4).map(|number| self.folder(number)).take_while(|folder| folder.exists()) {
            let Bandwidth { quota_us, period_us, .. } = Folder(&folder).read().unwrap();
            let part = quota_us.map_or(has, |us| us as f64 / period_us as f64);
            if part > has + 1e-9 {
                fs::write(file, before).unwrap();
                let error = io::Error::from_raw_os_error(libc::EINVAL);
                return Err(QuotaError::Refused { file: file.to_owned(), value: value.to_owned(), error });
            }
            has = part;
        }
        Ok(())
    }

    fn write(&self, number: usize, quota_us: Option<u64>, period_us: u64) -> Result<Bandwidth, String> {
        let folder = self.folder(number);
        let to = Bandwidth { quota_us, period_us, burst_us: 0 };
        let written = Folder(&folder).write_by(&to, &mut |file, value| self.put(file, value));
        written.map(|()| Folder(&folder).read().unwrap()).map_err(|error| error.to_string())
    }

    fn read(&self, number: usize) -> Bandwidth {
        Folder(&self.folder(number)).read().unwrap()
    }
}

#[test]
fn every_quota_that_the_kernel_takes_is_written_in_some_order() {
    let parts = [(30_000, 100_000), (300_000, 1_000_000), (45_000, 100_000)];
    // The one above, the one below, and all ways from one quota to another between them.
    for above in [(-1, 100_000), (45_000, 100_000), (30_000, 100_000)] {
        for below in [(-1, 100_000), (30_000, 100_000), (10_000, 100_000)] {
            for (from, to) in parts.iter().flat_map(|from| parts.iter().map(move |to| (*from, *to))) {
                let fits = |(quota, period): (u64, u64)| {
                    let part = quota as f64 / period as f64 + 1e-9;
                    (above.0 < 0 || part <= above.0 as f64 / above.1 as f64 + 2e-9)
                        && (below.0 < 0 || part >= below.0 as f64 / below.1 as f64)
                };
                if !fits(from) {
                    continue;
                }
                let nested = Nested::new(&[above, (from.0.cast_signed(), from.1), below]);
                let written = nested.write(1, Some(to.0), to.1);
                let case = format!("{above:?} {from:?} -> {to:?} {below:?}: {written:?}");
                assert_eq!(written.is_ok(), fits(to), "{case}");
                // What was refused has changed nothing.
                let (quota, period) = if fits(to) { to } else { from };
                assert_eq!((nested.read(1).quota_us, nested.read(1).period_us), (Some(quota), period), "{case}");
            }
        }
    }
}

#[test]
fn a_quota_is_cut_to_what_those_above_have() {
    let nested = Nested::new(&[(-1, 100_000), (10_000, 100_000), (-1, 100_000), (3_000, 1_000_000)]);
    let wanted = |quota_us, period_us| Bandwidth { quota_us, period_us, burst_us: 0 };
    let within = |to: Bandwidth| Folder(&nested.folder(3)).within_those_above(&to);
    assert_eq!(within(wanted(Some(30_000), 100_000)), Some(wanted(Some(10_000), 100_000)));
    assert_eq!(within(wanted(None, 50_000)), Some(wanted(Some(5_000), 50_000)));
    // Less than 1 ms is of a longer period.
    assert_eq!(within(wanted(Some(4_000), 5_000)), Some(wanted(Some(100_000), 1_000_000)));
    assert_eq!(within(wanted(Some(10_000), 100_000)), None);
    assert_eq!(nested.write(3, Some(10_000), 100_000), Ok(wanted(Some(10_000), 100_000)));
    assert!(nested.write(3, Some(10_001), 100_000).unwrap_err().contains("than the one above it, and none below it"));
}
