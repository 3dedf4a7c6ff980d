//! The files of a cgroup's quota: `cpu.max` of cgroup v2; of v1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
//!
//! Of v1's two files one is written after the other, and at each moment a cgroup may have no larger part of a CPU than the one
//! above it, and no smaller part than any below it (`__cfs_schedulable` in `kernel/sched/core.c`). One without a quota counts there as
//! having what the one above it has.

use std::fs;
use std::io;
use std::path::Path;

use crate::quota::{Bandwidth, LONGEST_US, QuotaError, SHORTEST_US};

/// A cgroup's folder in the hierarchy of the cpu controller, of either version.
pub(crate) struct Folder<'a>(pub &'a Path);

/// A file of a quota of v1.
#[derive(Clone, Copy)]
enum Part {
    Quota,
    Period,
}

impl Folder<'_> {
    pub(crate) fn read(&self) -> Result<Bandwidth, QuotaError> {
        let max = self.0.join("cpu.max");
        if max.exists() {
            let found = text(&max)?;
            let mut words = found.split_whitespace();
            let (quota, period) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let (quota, period) = (if quota == "max" { Ok(None) } else { quota.parse().map(Some) }, period.parse());
            let burst_us = optional(&self.0.join("cpu.max.burst"))?;
            return match (quota, period) {
                (Ok(quota_us), Ok(period_us)) => Ok(Bandwidth { quota_us, period_us, burst_us }),
                _ => {
                    Err(QuotaError::Unexpected { file: max, found, expected: "a quota or `max`, and a period, in us" })
                }
            };
        }
        Ok(Bandwidth {
            quota_us: u64::try_from(number(&self.0.join("cpu.cfs_quota_us"))?).ok(),
            period_us: number(&self.0.join("cpu.cfs_period_us"))?.unsigned_abs(),
            burst_us: optional(&self.0.join("cpu.cfs_burst_us"))?,
        })
    }

    /// Write a quota. Where the kernel does not take it, the one that there was is there again.
    pub(crate) fn write(&self, to: &Bandwidth) -> Result<(), QuotaError> {
        self.write_by(to, &mut put)
    }

    fn write_by(&self, to: &Bandwidth, put: &mut Put<'_>) -> Result<(), QuotaError> {
        let max = self.0.join("cpu.max");
        let is_v2 = max.exists();
        let now = self.read()?;
        let burst = self.0.join(if is_v2 { "cpu.max.burst" } else { "cpu.cfs_burst_us" });
        // The kernel takes no quota below the burst, and no burst above the quota.
        if now.burst_us > to.burst_us {
            put(&burst, &to.burst_us.to_string())?;
        }
        let written = if is_v2 {
            let quota = to.quota_us.map_or_else(|| "max".to_owned(), |us| us.to_string());
            put(&max, &format!("{quota} {}", to.period_us))
        } else {
            self.write_v1(&now, to, put)
        };
        if let Err(error) = written {
            if now.burst_us > to.burst_us {
                _ = put(&burst, &now.burst_us.to_string());
            }
            return Err(error);
        }
        if now.burst_us < to.burst_us {
            put(&burst, &to.burst_us.to_string())?;
        }
        Ok(())
    }

    /// Write both files of v1, in an order in which the kernel takes them.
    fn write_v1(&self, now: &Bandwidth, to: &Bandwidth, put: &mut Put<'_>) -> Result<(), QuotaError> {
        use Part::{Period, Quota};
        if now.period_us == to.period_us {
            return self.put_part(Quota, to, put);
        }
        // In between it has less than before and after where the longer period comes first, or the quota of the shorter one. That is
        // tried first; where a cgroup below has a part of it that is larger, the other order gives more for a moment.
        let less = if to.period_us > now.period_us { [Period, Quota] } else { [Quota, Period] };
        let more = [less[1], less[0]];
        let mut refused = None;
        for order in [less, more] {
            match self.put_both(order, now, to, put) {
                Err(error) if error.is_out_of_proportion() => refused = Some(error),
                done => return done,
            }
        }
        // Where those above and below leave no room on either side, it has none of its own for a moment.
        let free = Bandwidth { quota_us: None, ..*now };
        self.put_part(Quota, &free, put)?;
        match self.put_both([Period, Quota], &free, to, put) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.put_part(Quota, now, put)?;
                Err(refused.unwrap_or(error))
            }
        }
    }

    /// Write one file and then the other; the first has its value back where the second is refused.
    fn put_both(
        &self,
        [first, second]: [Part; 2],
        now: &Bandwidth,
        to: &Bandwidth,
        put: &mut Put<'_>,
    ) -> Result<(), QuotaError> {
        self.put_part(first, to, put)?;
        self.put_part(second, to, put).inspect_err(|_| _ = self.put_part(first, now, put))
    }

    fn put_part(&self, part: Part, of: &Bandwidth, put: &mut Put<'_>) -> Result<(), QuotaError> {
        match part {
            Part::Period => put(&self.0.join("cpu.cfs_period_us"), &of.period_us.to_string()),
            Part::Quota => {
                let quota = of.quota_us.map_or_else(|| "-1".to_owned(), |us| us.to_string());
                put(&self.0.join("cpu.cfs_quota_us"), &quota)
            }
        }
    }

    /// Return as much of a quota as the cgroups above leave; `None` where they leave all of it, or less than the kernel takes.
    pub(crate) fn within_those_above(&self, to: &Bandwidth) -> Option<Bandwidth> {
        let wanted = to.quota_us.map_or(u128::MAX, u128::from);
        let least = |period_us: u64| {
            let above = self.0.ancestors().skip(1).map_while(|folder| Folder(folder).read().ok());
            let part = |above: Bandwidth| {
                Some(u128::from(above.quota_us?) * u128::from(period_us) / u128::from(above.period_us))
            };
            above.filter_map(part).min()
        };
        // Of a longer period where that of a shorter one is too little for the kernel.
        [to.period_us, LONGEST_US].into_iter().find_map(|period_us| {
            let quota = least(period_us)?;
            let is_less = quota * u128::from(to.period_us) < wanted.saturating_mul(u128::from(period_us));
            let quota_us = u64::try_from(quota).ok().filter(|us| *us >= SHORTEST_US && is_less);
            quota_us.map(|us| Bandwidth { quota_us: Some(us), period_us, burst_us: to.burst_us.min(us) })
        })
    }
}

/// Writes a value to a file.
type Put<'a> = dyn FnMut(&Path, &str) -> Result<(), QuotaError> + 'a;

fn text(file: &Path) -> Result<String, QuotaError> {
    fs::read_to_string(file).map_err(|error| QuotaError::Unreadable { file: file.to_owned(), error })
}

fn number(file: &Path) -> Result<i64, QuotaError> {
    let found = text(file)?;
    found.trim().parse().map_err(|_| QuotaError::Unexpected {
        file: file.to_owned(),
        found,
        expected: "a number of us",
    })
}

/// Return the number in a file that older kernels do not have.
fn optional(file: &Path) -> Result<u64, QuotaError> {
    if file.exists() { Ok(number(file)?.unsigned_abs()) } else { Ok(0) }
}

fn put(file: &Path, value: &str) -> Result<(), QuotaError> {
    // Cgroup files are there or not: nothing must be created in their place.
    let written = fs::OpenOptions::new().write(true).truncate(true).open(file);
    let written = written.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    written.map_err(|error| QuotaError::Refused { file: file.to_owned(), value: value.to_owned(), error })
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
