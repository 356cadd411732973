"""Optimizers: a step comes after the gradients it reads, and before whatever reads the parameters that it writes."""

import torch

from tests.support.cuda_idioms.idiom import idiom


def parameter(value: float = 1.0) -> torch.nn.Parameter:
    """One of two elements on the device."""
    return torch.nn.Parameter(torch.full((2,), value, device="cuda"))


@idiom("data parallel training: gradients are reduced on a communication stream, which the step waits for", gives=[-3, -3])
def step_waits_for_the_reduced_gradients(right: bool) -> list[float]:
    reducing, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight = parameter()
    optimizer = torch.optim.SGD([weight], lr=1.0)
    (weight * 2).sum().backward()
    assert weight.grad is not None
    reducing.wait_stream(main)
    with torch.cuda.stream(reducing):
        weight.grad.mul_(2)
    if right:
        main.wait_stream(reducing)
    optimizer.step()
    torch.cuda.synchronize()
    return weight.tolist()


@idiom("optimizer states in host memory: the step waits until they have come back", gives=[0, 0])
def step_waits_for_its_state(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight, stored = torch.full((2,), 4.0, device="cuda"), torch.full((2,), 3.0).pin_memory()
    gradient = torch.ones(2, device="cuda")
    with torch.cuda.stream(copies):
        momentum = stored.to("cuda", non_blocking=True)
    if right:
        main.wait_stream(copies)
    momentum.add_(gradient)
    weight.sub_(momentum)
    torch.cuda.synchronize()
    return weight.tolist()


@idiom("optimizers that step on the CPU: a gradient is read by the host when its download has ended", gives=[-1, -1])
def cpu_step_waits_for_the_downloaded_gradient(right: bool) -> list[float]:
    weight = parameter()
    master, gradient = torch.ones(2), torch.zeros(2, pin_memory=True)
    (weight * 2).sum().backward()
    assert weight.grad is not None
    gradient.copy_(weight.grad, non_blocking=True)
    if right:
        torch.cuda.current_stream().synchronize()
    master.sub_(gradient)
    return master.tolist()


@idiom("optimizers that step on the CPU: the uploaded parameters are changed by the next step after the upload", gives=[1, 1])
def cpu_step_waits_for_the_last_upload(right: bool) -> list[float]:
    master, weight = torch.ones(2).pin_memory(), torch.zeros(2, device="cuda")
    weight.copy_(master, non_blocking=True)
    sent = torch.cuda.current_stream().record_event()
    if right:
        sent.synchronize()
    master.sub_(0.5)
    return weight.tolist()


@idiom("data parallel training: zero_grad drops gradients that a communication stream may still read", gives=[2, 2])
def dropped_gradients_are_recorded_on_the_reducing_stream(right: bool) -> list[float]:
    reducing, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight = parameter()
    optimizer = torch.optim.SGD([weight], lr=1.0)
    (weight * 2).sum().backward()
    assert weight.grad is not None
    reducing.wait_stream(main)
    with torch.cuda.stream(reducing):
        reduced = weight.grad * 1
    if right:
        weight.grad.record_stream(reducing)
    optimizer.zero_grad(set_to_none=True)
    torch.zeros(2, device="cuda")
    reducing.synchronize()
    return reduced.tolist()


@idiom("moving averages of weights on a side stream: the next step waits until the weights have been read", gives=[1, 1, 0, 0])
def next_step_waits_for_the_moving_average(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weight, average = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        average.lerp_(weight, 1.0)
    if right:
        main.wait_stream(side)
    weight.sub_(1)
    torch.cuda.synchronize()
    return [*average.tolist(), *weight.tolist()]
