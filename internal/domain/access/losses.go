package access

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// The state keeps this many of the newest accepted losses, with this much text for each.
const (
	LossesMax   = 32
	LossTextMax = 1024
)

// Loss is lost data of this installation that its operator has agreed to continue without.
type Loss struct {
	At   domain.Time
	Part string // the part of the data directory, as named on the command line
	What string // for people
}

func (l *Loss) Fields(c *wire.Codec) {
	wire.Int(c, 1, &l.At)
	c.String(2, &l.Part)
	c.String(3, &l.What)
}

// AcceptLoss records data that the operator continues without. A new cell secret invalidates every access key derived from another one, because the
// secrets that the service derives no longer match those of the keys' holders.
type AcceptLoss struct {
	Part, What string
	Secret     string // see LossAccepted
}

func (cmd *AcceptLoss) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.Part == "" || len(cmd.Part) > LossTextMax {
		return domain.Refuse(domain.Invalid, "part %.100q: want 1 to %d bytes", cmd.Part, LossTextMax)
	}
	what := cmd.What
	if len(what) > LossTextMax {
		what = strings.ToValidUTF8(what[:LossTextMax], "")
	}
	if was := t.Records.TakenOver; cmd.Secret != "" && was != nil {
		by := Actor{Principal: "accept-loss " + cmd.Part, Door: "process"}
		v := t.View()
		all := t.recorded()
		for _, k := range v.AccessKeys() {
			if at := secretAt(all, k.SecretGeneration()); k.Works() && (at < 0 || all[at].Check != cmd.Secret) {
				t.Emit(&AccessKeyRevoked{k.ID, t.Now, by.Cut()})
			}
		}
	}
	t.Emit(&LossAccepted{Loss{t.Now, cmd.Part, what}, cmd.Secret})
	return nil
}

func (c *State) applyLoss(e *LossAccepted) {
	c.Touch()
	c.losses = append(slices.Clone(c.losses), e.Loss) // a snapshot may share the old slice
	c.losses = c.losses[max(0, len(c.losses)-LossesMax):]
	if e.Secret != "" && c.Records.TakenOver != nil {
		c.secrets = nil // the new secret is the first one again: keys derived from another one are invalid
		v := c.View()
		for _, k := range v.AccessKeys() {
			if k.Generation != 0 {
				k.Generation = 0
				c.put(k)
			}
		}
		was := *c.Records.TakenOver
		was.Secret = e.Secret
		c.Records.TakenOver = &was
	}
}

// Losses returns the accepted losses in the state, oldest first.
func (v *View) Losses() []Loss {
	v.SawAll()
	return slices.Clone(v.c.losses)
}
