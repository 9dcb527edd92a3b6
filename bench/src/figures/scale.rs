//! How launches scale: with workers, with the host's memory and mounts, and with binds.

use std::time::{Duration, Instant};

use super::Setting;
use crate::measure::{Contender, Outcome, Spread, alternate};
use crate::remote::{Kind, Remote};
use crate::report::Table;
use crate::world::run_ours;

/// Launches per second, sustained.
pub(crate) fn rate(setting: &Setting) -> Outcome<Vec<Table>> {
    const TURNS: usize = 3;
    let span = Duration::from_secs_f64(setting.seconds);
    let world = &setting.world;
    let (shared, two) = (world.sandbox()?, world.builder(0)?.launchers(2).build()?);
    let mut table = Table::new("launches per second, sustained", "1/s; ratio to bwrap");
    for workers in [1, 2, 4] {
        let mut rates = [const { Vec::new() }; 4];
        for _ in 0..TURNS {
            let [bwrap, ours, pair, apart] = &mut rates;
            bwrap.push(sustain(workers, span, || {
                let mut peer = world.peer()?;
                Ok(move || peer.run().map(drop))
            })?);
            ours.push(sustain(workers, span, || Ok(|| run_ours(&shared).map(drop)))?);
            pair.push(sustain(workers, span, || Ok(|| run_ours(&two).map(drop)))?);
            apart.push(sustain(workers, span, || {
                let sandbox = world.sandbox()?;
                Ok(move || run_ours(&sandbox).map(drop))
            })?);
        }
        let [bwrap, ours, pair, apart] = &rates;
        let names = [
            "bwrap",
            "postern, one sandbox",
            "postern, one sandbox with two launchers",
            "postern, a sandbox each",
        ];
        let mut ratios = Vec::new();
        for (name, values) in names.into_iter().zip([bwrap, ours, pair, apart]) {
            let ratio = Spread::of(values.iter().zip(bwrap).map(|(own, bwrap)| own / bwrap));
            let name = format!("{workers} workers, {name}");
            table.row_with(name, Spread::of(values.iter().copied()), ratio);
            ratios.push(ratio.p50);
        }
        if let ([_, ours, ..], 2) = (ratios.as_slice(), workers) {
            table.promise("times bwrap's rate with 2 workers", *ours, 3.5, 5.0);
        }
    }
    Ok(vec![table])
}

/// Runs what `prepare` makes, in each of `workers` threads, for `span`; launches per second.
fn sustain<A: FnMut() -> Outcome<()>>(
    workers: u32,
    span: Duration,
    prepare: impl Fn() -> Outcome<A> + Sync,
) -> Outcome<f64> {
    let work = || -> Outcome<(u32, Duration)> {
        let mut act = prepare()?;
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < span {
            act()?;
            count += 1;
        }
        Ok((count, start.elapsed()))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut rate = 0.0;
        for thread in threads {
            let (count, took) = thread.join().map_err(|_panic| "a worker panicked")??;
            rate += f64::from(count) / took.as_secs_f64();
        }
        Ok(rate)
    })
}

/// Memory and mounts of the host, which must not matter.
pub(crate) fn host(setting: &Setting) -> Outcome<Vec<Table>> {
    let memory = ("a host of 2 GiB", "2 GiB", Kind::new(2048, 0, "ours"), Some((1.05, 1.01)));
    let mounts =
        |act, promise| ("500 more host mounts", "500 more", Kind::new(0, 500, act), promise);
    let rows = [
        (memory, "ours"),
        (mounts("ours", Some((1.1, 1.01))), "ours"),
        (mounts("build", None), "build"),
        (mounts("peer", None), "peer"),
    ];
    let mut tables = Vec::new();
    for ((title, name, large, promise), act) in rows {
        let what = match act {
            "ours" => "postern, Sandbox::run",
            "build" => "postern, Sandbox::build",
            _ => "bwrap",
        };
        let mut table = Table::new(format!("{title}: {what}"), "us");
        if name == "500 more" && !rustix::process::geteuid().is_root() {
            table.note("SKIPPED: only root can mount in a namespace of the host's");
            tables.push(table);
            continue;
        }
        let mut plain = Remote::start(&Kind::new(0, 0, act), &setting.bwrap)?;
        let mut large = Remote::start(&large, &setting.bwrap)?;
        let mut contenders = [plain.contender("plain host"), large.contender(name)];
        let series = alternate(setting.effort, &mut contenders)?;
        if let [plain, large] = series.as_slice() {
            table = Table::of_series(format!("{title}: {what}"), &series);
            if let Some((must, aim)) = promise {
                let slowdown = large.pairwise(plain, |large, plain| large / plain).p50;
                table.promise("times the plain host's time", slowdown, must, aim);
            }
        }
        tables.push(table);
    }
    Ok(tables)
}

/// What a bind of the profile costs each run.
pub(crate) fn binds(setting: &Setting) -> Outcome<Vec<Table>> {
    const MORE: usize = 100;
    let few = setting.world.sandbox()?;
    let many = setting.world.builder(MORE)?.build()?;
    let pause = Duration::ZERO;
    let mut contenders = [
        Contender::new("default profile", pause, || run_ours(&few)),
        Contender::new("100 more binds", pause, || run_ours(&many)),
    ];
    let series = alternate(setting.effort, &mut contenders)?;
    let mut table = Table::of_series("template binds", &series);
    if let [few, many] = series.as_slice() {
        let each = many.pairwise(few, |many, few| (many - few) / 100.0);
        table.row("each bind", few.count(), each);
        table.promise("us for each bind", each.p50, 2.0, 1.0);
    }
    Ok(vec![table])
}
