package kernel

// Reader is common to the views of all rooms: it stores the number of the newest change that was read, so that a caller can wait until
// that change is durable. No client ever reads a change that could still be lost.
type Reader struct {
	k    *Kernel
	seen uint64
}

// Reader returns a Reader. It is valid until the next command is executed.
func (k *Kernel) Reader() Reader { return Reader{k: k} }

// Seen returns the journal number of the newest change that was read.
func (r *Reader) Seen() uint64 { return r.seen }

// Saw records that a record was read, by the number of its last change.
func (r *Reader) Saw(changed uint64) { r.seen = max(r.seen, changed) }

// SawAll is for answers that depend on the absence of a record.
func (r *Reader) SawAll() { r.Saw(r.k.changed) }

// Found records whether a record was found, and if so that it was read, by the number of its last change.
func (r *Reader) Found(ok bool, changed uint64) bool {
	if ok {
		r.Saw(changed)
	} else {
		r.SawAll()
	}
	return ok
}

// Page returns copies of the first limit records that each yields.
func Page[T any](limit int, each func(yield func(*T) bool)) (page []T) {
	each(func(x *T) bool {
		page = append(page, *x)
		return len(page) < limit
	})
	return page
}
