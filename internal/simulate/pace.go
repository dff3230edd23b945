package simulate

import (
	"context"
	"time"
)

// pace keeps a simulation from using a whole processor: it rests in proportion to the time that it worked.
type pace struct {
	share float64 // of the time for work; 0: no rest
	began time.Time

	now  func() time.Time
	rest func(context.Context, time.Duration) error
}

// workSlice is how long a simulation works before it rests. Short slices allow the service to do its work in between.
const workSlice = 5 * time.Millisecond

func newPace(share float64) *pace {
	return &pace{share: share, began: time.Now(), now: time.Now, rest: rest}
}

// keep rests if a rest is due. It fails when the context ends.
func (p *pace) keep(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.share == 0 {
		return nil
	}
	worked := p.now().Sub(p.began)
	if worked < workSlice {
		return nil
	}
	err := p.rest(ctx, time.Duration(float64(worked)*(1-p.share)/p.share))
	p.began = p.now()
	return err
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
