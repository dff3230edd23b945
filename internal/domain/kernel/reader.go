package kernel

// Reader is what the views of all rooms have in common: it notes the newest change that was shown, so that its user can
// wait until that is durable. Nothing that was ever told can be lost.
type Reader struct {
	k    *Kernel
	seen uint64
}

// Reader returns a Reader. It is good as long as no command is executed.
func (k *Kernel) Reader() Reader { return Reader{k: k} }

// Seen is the journal number of the newest change that was shown.
func (r *Reader) Seen() uint64 { return r.seen }

// Saw notes that a record was shown, by the number of its last change.
func (r *Reader) Saw(changed uint64) { r.seen = max(r.seen, changed) }

// SawAll is for answers that depend on what is not there.
func (r *Reader) SawAll() { r.Saw(r.k.changed) }
