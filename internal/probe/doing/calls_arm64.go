package doing

// oldCalls are those that newer architectures do not have.
var oldCalls map[uint64]call
