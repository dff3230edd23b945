package kernel

// Plain is embedded by rooms without deadlines, work to settle, or records that end.
type Plain struct{}

// Due is never called.
func (Plain) Due(Deadline) (heavy bool) { return false }

// Settle is never called.
func (Plain) Settle() {}

// Reset is never called.
func (Plain) Reset() {}

// EachEnded yields nothing.
func (Plain) EachEnded(func(no uint64, e Ended)) {}

// Drop is never called.
func (Plain) Drop(Ended) (counts bool) { return false }
