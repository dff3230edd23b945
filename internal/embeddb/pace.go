package embeddb

import "time"

// Pace makes background work rest, so that it leaves the processors and the disk to requests. Without rests, a compaction of the archive occupies a
// whole processor for some hundred milliseconds, a flush of the journal for seventy, and their writes delay the journal's syncs.
type Pace struct {
	stop    <-chan struct{} // ends the rests
	left    time.Duration   // remaining time for rests
	resumed time.Time
}

const (
	stint   = time.Millisecond // minimum work between rests, because timers do not keep much shorter rests
	rests   = 4                // a rest takes this many times as long as the work before it
	longest = 20 * time.Millisecond
)

// NewPace returns a Pace for work that starts now and may rest for `most` in total.
func NewPace(stop <-chan struct{}, most time.Duration) Pace {
	return Pace{stop: stop, left: most, resumed: time.Now()}
}

// Rest rests if a rest is due. Otherwise it costs next to nothing, so it can be called often.
func (p *Pace) Rest() { p.rest(rests) }

// rest rests `times` as long as the work before took.
func (p *Pace) rest(times time.Duration) {
	worked := time.Since(p.resumed)
	if worked < stint || p.left <= 0 {
		return
	}
	rest := min(times*worked, longest, p.left)
	p.left -= rest
	select {
	case <-time.After(rest):
	case <-p.stop:
		p.left = 0
	}
	p.resumed = time.Now()
}

// Pace returns a Pace for writes that start now and may rest for `most` in total. They no longer rest once the database closes.
func (db *DB) Pace(most time.Duration) Pace { return NewPace(db.stop.short.closing, most) }
