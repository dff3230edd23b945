package support

import "sync"

// RingBytes is how much of its log a service keeps in memory for support bundles: a few thousand lines.
const RingBytes = 1 << 20

// Ring keeps the end of its input, such as the lines of a log. It may be used concurrently.
type Ring struct {
	mu   sync.Mutex
	most int
	kept []byte // a circle once it has most bytes
	next int    // where the next byte goes in the full circle
}

// NewRing returns a Ring for the given number of bytes. It allocates memory only as bytes are written.
func NewRing(most int) *Ring { return &Ring{most: most} }

// Write implements io.Writer. It never fails.
func (r *Ring) Write(p []byte) (int, error) {
	n := len(p)
	if n > r.most {
		p = p[n-r.most:]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if room := min(r.most-len(r.kept), len(p)); room > 0 {
		r.kept, p = append(r.kept, p[:room]...), p[room:]
	}
	for len(p) > 0 {
		moved := copy(r.kept[r.next:], p)
		p, r.next = p[moved:], (r.next+moved)%r.most
	}
	return n, nil
}

// Lines returns the content from the first complete line on.
func (r *Ring) Lines() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append(append(make([]byte, 0, len(r.kept)), r.kept[r.next:]...), r.kept[:r.next]...)
	if len(r.kept) < r.most {
		return all
	}
	for i, c := range all {
		if c == '\n' {
			return all[i+1:]
		}
	}
	return nil // one line that is longer than the ring
}
