import math, time
def busy(n):
    x = 0.0
    for i in range(n):
        x += math.sqrt(i)
    return x
def outer(n):
    return busy(n)
end = time.time() + 60
while time.time() < end:
    outer(100000)
