package refusals

// forks are none: there is only clone.
var forks []uint32
