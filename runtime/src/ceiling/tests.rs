//! Every interleaving of a few waiters, and a thousand threads and tasks that come and go.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;

/// What somebody does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Join,
    /// Look whether the place is here, and take it.
    Look,
    Leave,
    Release,
}

/// One who asks for a place once, waits or gives up, and gives it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Somebody {
    Away,
    Waits(Ticket),
    Inside,
    Gone,
}

/// A queue and everybody around it, as far as one history has come.
struct World {
    queue: Queue<usize>,
    people: Vec<Somebody>,
    /// Who waits, in the order in which they came.
    order: Vec<usize>,
    history: Vec<(usize, Act)>,
}

impl World {
    /// The world after a history.
    fn after(places: u32, waiting_max: u32, people: usize, history: &[(usize, Act)]) -> World {
        let people = vec![Somebody::Away; people];
        let queue = Queue::new(places);
        let mut world = World { queue, people, order: Vec::new(), history: Vec::new() };
        for (who, act) in history {
            world.act(*who, *act, waiting_max);
        }
        world
    }

    fn acts(&self, who: usize) -> &'static [Act] {
        match self.people[who] {
            Somebody::Away => &[Act::Join],
            Somebody::Waits(_) => &[Act::Look, Act::Leave],
            Somebody::Inside => &[Act::Release],
            Somebody::Gone => &[],
        }
    }

    /// Who has been told that the place is theirs, and has not yet come for it.
    fn called(&self) -> Vec<usize> {
        let is_called = |who: &usize| {
            matches!(self.people[*who], Somebody::Waits(ticket)
                if !self.queue.waiting.contains_key(&ticket))
        };
        (0..self.people.len()).filter(is_called).collect()
    }

    fn act(&mut self, who: usize, act: Act, waiting_max: u32) {
        self.history.push((who, act));
        let woken = match (act, self.people[who]) {
            (Act::Join, _) => {
                let was_idle = self.order.is_empty() && self.queue.taken() < self.queue.places();
                self.people[who] = match self.queue.join(waiting_max, || who) {
                    Joined::Placed => {
                        assert!(was_idle, "a newcomer passed the queue: {:?}", self.history);
                        Somebody::Inside
                    }
                    Joined::Waits(ticket) => {
                        self.order.push(who);
                        Somebody::Waits(ticket)
                    }
                    Joined::Full => {
                        assert_eq!(self.queue.waiting(), waiting_max, "{:?}", self.history);
                        Somebody::Gone
                    }
                };
                None
            }
            (Act::Look, Somebody::Waits(ticket)) => {
                let is_called = self.called().contains(&who);
                assert_eq!(self.queue.is_placed(ticket, || who), is_called);
                if is_called {
                    self.people[who] = Somebody::Inside;
                }
                None
            }
            (Act::Leave, Somebody::Waits(ticket)) => {
                self.people[who] = Somebody::Gone;
                self.order.retain(|other| *other != who);
                match self.queue.leave(ticket) {
                    Left::Unplaced => None,
                    Left::Passed(next) => next,
                }
            }
            (Act::Release, _) => {
                self.people[who] = Somebody::Gone;
                self.queue.release()
            }
            (act, state) => panic!("{act:?} in {state:?}"),
        };
        if let Some(woken) = woken {
            assert_eq!(
                Some(woken),
                self.order.first().copied(),
                "not the first: {:?}",
                self.history
            );
            self.order.remove(0);
        }
        self.check();
    }

    /// What must hold at any time.
    fn check(&self) {
        let inside = self.people.iter().filter(|one| **one == Somebody::Inside).count();
        let used = inside + self.called().len();
        assert_eq!(used, self.queue.taken() as usize, "{:?}", self.history);
        assert!(self.queue.taken() <= self.queue.places(), "{:?}", self.history);
        let is_idle = self.queue.taken() < self.queue.places();
        assert!(!is_idle || self.queue.waiting() == 0, "a place for nobody: {:?}", self.history);
    }
}

/// Follows every history to its end; how many there are.
fn explore(places: u32, waiting_max: u32, people: usize, history: &mut Vec<(usize, Act)>) -> usize {
    let world = World::after(places, waiting_max, people, history);
    let mut ends = 0;
    let mut is_end = true;
    for who in 0..people {
        for act in world.acts(who) {
            // Looking in vain changes nothing.
            if *act == Act::Look && !world.called().contains(&who) {
                continue;
            }
            is_end = false;
            history.push((who, *act));
            ends += explore(places, waiting_max, people, history);
            history.pop();
        }
    }
    if is_end {
        let left = (world.queue.taken(), world.queue.waiting());
        let is_stuck = world.people.iter().any(|one| matches!(one, Somebody::Waits(_)));
        assert!(left == (0, 0) && !is_stuck, "{left:?} left: {history:?}");
        ends = 1;
    }
    ends
}

#[test]
fn in_every_history_places_go_to_the_first_and_all_come_back() {
    let rows = [(1, 9, 3), (2, 9, 4), (1, 1, 3), (1, 0, 3), (2, 1, 4)];
    for (places, waiting_max, people) in rows {
        let count = explore(places, waiting_max, people, &mut Vec::new());
        assert!(count > 5, "{places} places, {people} people: {count} histories");
    }
}

fn place(entry: Result<Entry, Busy>) -> Place {
    match entry.unwrap() {
        Entry::Placed(place) => place,
        Entry::Waits(waiting) => waiting.wait().unwrap(),
    }
}

#[test]
fn who_may_not_wait_is_refused_with_the_reason() {
    let ceiling = Ceiling::new(1);
    let held = place(ceiling.enter(None));
    let ms = Duration::from_millis;
    let rows = [
        (ceiling.clone(), Some(Duration::ZERO), Busy::NoPlace { runs_max: 1 }),
        (ceiling.clone().queue_timeout(Duration::ZERO), None, Busy::NoPlace { runs_max: 1 }),
        (ceiling.clone().waiting_max(0), None, Busy::QueueFull { runs_max: 1, waiting_max: 0 }),
        (ceiling.clone(), Some(ms(5)), Busy::QueueTimeout { runs_max: 1, after: ms(5) }),
        (
            ceiling.clone().queue_timeout(ms(7)),
            None,
            Busy::QueueTimeout { runs_max: 1, after: ms(7) },
        ),
    ];
    for (ceiling, timeout, expected) in rows {
        let refused = match ceiling.enter(timeout) {
            Err(busy) => busy,
            Ok(Entry::Waits(waiting)) => waiting.wait().unwrap_err(),
            Ok(Entry::Placed(_)) => panic!("a place for {expected:?}"),
        };
        assert_eq!(refused, expected);
        assert!(refused.to_string().contains("fix: "), "{refused}");
    }
    assert_eq!((ceiling.running(), ceiling.waiting()), (1, 0));
    drop(held);
    assert_eq!(ceiling.running(), 0);
    drop(place(ceiling.enter(Some(Duration::ZERO))));
    assert!(matches!(Ceiling::new(0).enter(Some(Duration::ZERO)), Err(Busy::NoPlace { .. })));
}

#[test]
fn they_are_served_in_the_order_in_which_they_came() {
    let ceiling = Ceiling::new(1);
    let held = place(ceiling.enter(None));
    let (served, order) = mpsc::channel();
    std::thread::scope(|scope| {
        for number in 0..50 {
            let Ok(Entry::Waits(waiting)) = ceiling.enter(None) else { panic!("a place") };
            let served = served.clone();
            scope.spawn(move || {
                let place = waiting.wait().unwrap();
                served.send(number).unwrap();
                drop(place);
            });
        }
        drop(held);
    });
    drop(served);
    assert_eq!(order.iter().collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
}

/// Numbers that differ from one another, and not from run to run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A thousand waiters of which a third give up, at random moments, some when their place is there
/// already: never more inside than may be, and nothing is left.
#[test]
fn a_thousand_waiters_come_and_go() {
    const PLACES: u32 = 7;
    let ceiling = Ceiling::new(PLACES);
    let held: Vec<_> = (0..PLACES).map(|_| place(ceiling.enter(None))).collect();
    let (inside, served, gave_up) = (AtomicU32::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let queue: Mutex<VecDeque<_>> = Mutex::default();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..1000 {
        let timeout = (random.below(3) == 0).then(|| Duration::from_micros(random.below(40_000)));
        let Ok(Entry::Waits(waiting)) = ceiling.enter(timeout) else {
            // Zero: it was not to wait.
            gave_up.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        // Some are dropped without waiting, as a future is.
        let is_dropped = timeout.is_some() && random.below(2) == 0;
        queue.lock().unwrap().push_back((waiting, is_dropped));
    }
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some((waiting, is_dropped)) = next else { break };
                    let answer = if is_dropped { None } else { waiting.wait().ok() };
                    let Some(place) = answer else {
                        gave_up.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(now <= PLACES, "{now} at once");
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(place);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        drop(held);
    });
    let (served, gave_up) = (served.into_inner(), gave_up.into_inner());
    assert_eq!(served + gave_up, 1000);
    assert!(served > 500 && gave_up > 100, "{served} served, {gave_up} gave up");
    assert_eq!((ceiling.running(), ceiling.waiting()), (0, 0));
}

#[test]
fn a_dropped_turn_passes_its_place_on() {
    struct Count(AtomicU32);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let ceiling = Ceiling::new(1);
    let held = place(ceiling.enter(None));
    let mut turns: Vec<_> = (0..3)
        .map(|_| match ceiling.enter(None) {
            Ok(Entry::Waits(waiting)) => waiting,
            other => panic!("{other:?}"),
        })
        .collect();
    let counts = [(); 3].map(|()| Arc::new(Count(AtomicU32::new(0))));
    for (turn, count) in turns.iter_mut().zip(&counts) {
        let waker = Waker::from(Arc::clone(count));
        assert!(Pin::new(turn).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let woken = || counts.each_ref().map(|count| count.0.load(Ordering::Relaxed));
    // The second gives up while it waits, the first when its place is there.
    drop(turns.remove(1));
    assert_eq!(woken(), [0, 0, 0]);
    drop(held);
    assert_eq!(woken(), [1, 0, 0]);
    drop(turns.remove(0));
    assert_eq!(woken(), [1, 0, 1]);
    assert_eq!((ceiling.running(), ceiling.waiting()), (1, 0));
    drop(turns);
    assert_eq!((ceiling.running(), ceiling.waiting()), (0, 0));
}
