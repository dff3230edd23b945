package backup

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/musterhq/muster/internal/embeddb"
)

// Paced returns a writer that writes at most rate bytes a second, with bursts of one second's worth. It also slows down the work that produces the
// bytes. A rate of 0 is unlimited. It ends with ctx.
func Paced(ctx context.Context, to io.Writer, rate int64) io.Writer {
	return &paced{ctx: ctx, to: to, rate: rate, work: embeddb.NewPace(ctx.Done(), math.MaxInt64)}
}

type paced struct {
	ctx  context.Context
	to   io.Writer
	rate int64
	free time.Time // when all that was written is paid for
	work embeddb.Pace
}

func (p *paced) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if p.rate > 0 {
		p.work.Rest()
		now := time.Now()
		if p.free.Before(now.Add(-time.Second)) {
			p.free = now.Add(-time.Second)
		}
		if wait := p.free.Sub(now); wait > 0 {
			select {
			case <-time.After(wait):
			case <-p.ctx.Done():
				return 0, p.ctx.Err()
			}
		}
		p.free = p.free.Add(time.Duration(float64(len(b)) / float64(p.rate) * float64(time.Second)))
	}
	return p.to.Write(b)
}
