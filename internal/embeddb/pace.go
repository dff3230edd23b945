package embeddb

import "time"

// Pace makes work in the background rest, so that it leaves the processors and the disk to those who wait for an answer. Without rests, a compaction of
// the archive takes a whole processor for some hundred milliseconds, a flush of the journal for seventy, and their writes delay the journal's syncs.
type Pace struct {
	stop    <-chan struct{} // ends the rests
	left    time.Duration   // of rests
	resumed time.Time
}

const (
	stint   = time.Millisecond // of work at least: timers do not keep much shorter rests
	rests   = 4                // times as long as the stint before
	longest = 20 * time.Millisecond
)

// NewPace is for work that begins now and may rest for so long in total.
func NewPace(stop <-chan struct{}, most time.Duration) Pace {
	return Pace{stop: stop, left: most, resumed: time.Now()}
}

// Rest rests, if it is time to. It costs next to nothing otherwise, so it can be called often.
func (p *Pace) Rest() { p.rest(rests) }

// rest rests so many times as long as the stint before.
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

// Pace is for writes that begin now and may rest for so long in total. They do not rest any more when the database closes.
func (db *DB) Pace(most time.Duration) Pace { return NewPace(db.stop.short.closing, most) }
