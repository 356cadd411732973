"""Host threads: the current stream is each thread's own, and what one thread has done is another's after a hand-over."""

import queue
import threading

import torch

from tests.support.cuda_idioms.idiom import idiom


def run(work: threading.Thread) -> None:
    """Starts a thread and waits for its end."""
    work.start()
    work.join()


@idiom("torch's notes on CUDA semantics: a stream that is chosen in one thread is not another thread's", gives=[3, 3])
def thread_enters_the_stream_itself(right: bool) -> list[float]:
    side, outs = torch.cuda.Stream(), list[torch.Tensor]()
    with torch.cuda.stream(side):
        made = torch.ones(2, device="cuda")

        def work() -> None:
            with torch.cuda.stream(side if right else None):
                outs.append(made + 2)

        run(threading.Thread(target=work))
    torch.cuda.synchronize()
    return outs[0].tolist()


@idiom("loader threads: what a thread uploads is handed over with an event", gives=[0, 0, 1, 1])
def uploaded_batches_are_handed_over_with_an_event(right: bool) -> list[float]:
    handed: queue.Queue[tuple[torch.Tensor, torch.cuda.Event]] = queue.Queue()
    main = torch.cuda.current_stream()

    def load() -> None:
        copies = torch.cuda.Stream()
        with torch.cuda.stream(copies):
            for number in range(2):
                sent = torch.full((2,), float(number)).pin_memory().to("cuda", non_blocking=True)
                handed.put((sent, copies.record_event()))

    run(threading.Thread(target=load))
    outs = []
    for _ in range(2):
        sent, ready = handed.get()
        if right:
            main.wait_event(ready)
        sent.record_stream(main)
        outs.append(sent * 1)
    torch.cuda.synchronize()
    return torch.cat(outs).tolist()


@idiom("writer threads of checkpoints: the thread waits for the event that comes with the pinned copy", gives=[5, 5])
def writer_thread_waits_for_the_download(right: bool) -> list[float]:
    landed, written = torch.zeros(2, pin_memory=True), list[float]()
    landed.copy_(torch.full((2,), 5.0, device="cuda"), non_blocking=True)
    done = torch.cuda.current_stream().record_event()

    def write() -> None:
        if right:
            done.synchronize()
        written.extend(landed.tolist())

    run(threading.Thread(target=write))
    return written


@idiom("threads that fill pinned memory: the upload is issued after the thread has been joined", gives=[7, 7])
def upload_comes_after_the_filling_thread(right: bool) -> list[float]:
    staging = torch.zeros(2).pin_memory()
    started, may_fill = threading.Event(), threading.Event()

    def fill() -> None:
        started.set()
        may_fill.wait()
        staging.fill_(7)

    filler = threading.Thread(target=fill)
    filler.start()
    started.wait()
    if right:
        may_fill.set()
        filler.join()
    out = staging.to("cuda", non_blocking=True)
    may_fill.set()
    filler.join()
    return out.tolist()


@idiom(
    "one staging buffer for several threads: the lock is held, and the last copy waited for, before it is filled",
    gives=[1, 1, 2, 2],
)
def shared_staging_is_waited_for_under_its_lock(right: bool) -> list[float]:
    lock, staging, sent = threading.Lock(), torch.zeros(2, pin_memory=True), torch.cuda.Event()
    out = torch.zeros(2, 2, device="cuda")

    def upload(row: int) -> None:
        with lock:
            if right:
                sent.synchronize()
            staging.fill_(row + 1)
            out[row].copy_(staging, non_blocking=True)
            sent.record()

    for row in range(2):
        run(threading.Thread(target=upload, args=(row,)))
    torch.cuda.synchronize()
    return out.flatten().tolist()


@idiom("threads that share pinned memory: each has a part of its own until the other has ended", gives=[1, 2])
def threads_write_parts_of_their_own(right: bool) -> list[float]:
    shared = torch.zeros(2, pin_memory=True)

    def add(at: int, value: float) -> None:
        shared[at] += value

    other = threading.Thread(target=add, args=(0 if right else 1, 1.0))
    other.start()
    add(1, 2.0)
    other.join()
    return shared.to("cuda", non_blocking=True).tolist()
