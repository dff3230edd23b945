package frames

import (
	"time"

	"github.com/musterhq/muster/internal/steady"
)

// paceUnit is how many bytes of a frame count as much as one frame.
const paceUnit = 1 << 10

// keepPace counts a frame, and waits until the rate allows it. It returns an error if the connection has ended meanwhile: frames that have arrived
// may fill minutes.
func (r *Reader) keepPace(bytes int) error {
	limit := r.config.Pace
	if limit.Every == 0 {
		return nil
	}
	full, early := limit.Next(r.full, steady.Now(), 1+bytes/paceUnit)
	r.full = full
	if early <= 0 {
		return nil
	}
	time.Sleep(early)
	if r.waits == nil {
		return nil
	}
	return r.waits.Ended()
}
