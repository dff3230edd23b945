package cell

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Bounds of what is remembered of accepted losses: the newest ones, and so many bytes of text for each.
const (
	lossesMax   = 32
	lossTextMax = 1024
)

// Loss is data of this installation that was lost, and that its operator chose to go on without.
type Loss struct {
	At   domain.Time
	Part string // of the data directory, in the words of the command line
	What string // for people
}

// Fields of a Loss.
func (l *Loss) Fields(c *wire.Codec) {
	wire.Int(c, 1, &l.At)
	c.String(2, &l.Part)
	c.String(3, &l.What)
}

// AcceptLoss records what the operator goes on without. With another cell secret every access key has ended, because what
// its holder signs with is no longer what the service derives.
type AcceptLoss struct {
	Part, What string
	Secret     string // see LossAccepted
}

func (cmd *AcceptLoss) decide(t *tx) error {
	if cmd.Part == "" || len(cmd.Part) > lossTextMax {
		return domain.Refuse(domain.Invalid, "part %.100q: want 1 to %d bytes", cmd.Part, lossTextMax)
	}
	what := cmd.What
	if len(what) > lossTextMax {
		what = strings.ToValidUTF8(what[:lossTextMax], "")
	}
	if was := t.c.access.TakenOver; cmd.Secret != "" && was != nil && was.Secret != cmd.Secret {
		by := access.Actor{Principal: "accept-loss " + cmd.Part, Door: "process"}
		v := t.c.View()
		for _, k := range v.AccessKeys() {
			if k.Works() {
				t.emit(&AccessKeyRevoked{k.ID, t.now, by.Cut()})
			}
		}
	}
	t.emit(&LossAccepted{Loss{t.now, cmd.Part, what}, cmd.Secret})
	return nil
}

func (c *Cell) applyLoss(e *LossAccepted) {
	c.touch()
	c.losses = append(slices.Clone(c.losses), e.Loss) // a snapshot may hold the old ones
	c.losses = c.losses[max(0, len(c.losses)-lossesMax):]
	if e.Secret != "" && c.access.TakenOver != nil {
		was := *c.access.TakenOver
		was.Secret = e.Secret
		c.access.TakenOver = &was
	}
}

// Losses are the accepted losses that are remembered, the oldest first.
func (v *View) Losses() []Loss {
	v.sawAll()
	return slices.Clone(v.c.losses)
}

// Forgotten is how many records have left memory for the archive; see Cell.Forgotten.
func (v *View) Forgotten() uint64 {
	v.sawAll()
	return v.c.forgotten
}
