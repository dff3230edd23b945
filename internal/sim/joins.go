package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// ofHosts are the commands of hosts that join, connect and leave, and of their operators. The plans of a world of hosts concern its own hosts, so that no host
// leaves without the world's knowledge.
var ofHosts = []maker{
	{2, issueHostToken}, {1, revokeHostToken}, {6, joinHost}, {8, attachHost}, {2, describeHost}, {8, keepHosts}, {1, leaveHost}, {1, drainJoinedHost}, {1, revokeHost},
}

func issueHostToken(w *Wishes, v *cell.View) kernel.Command {
	cmd := &hosts.IssueToken{ID: fmt.Sprint("t", w.chance.IntN(4)), Hash: fmt.Sprint("h", w.chance.IntN(2)), Uses: uint32(w.chance.IntN(4)), Valid: time.Duration(w.chance.IntN(600)) * time.Second}
	if w.oneIn(2) {
		cmd.Location = w.locationName()
	}
	if f, ok := w.fleet(v); ok && w.oneIn(2) {
		cmd.Fleet = f.ID
	}
	return cmd
}

func revokeHostToken(w *Wishes, _ *cell.View) kernel.Command {
	return &hosts.RevokeToken{ID: fmt.Sprint("t", w.chance.IntN(4))}
}

func joinHost(w *Wishes, v *cell.View) kernel.Command {
	n := w.chance.IntN(8)
	cmd := &hosts.Join{Token: "t0", Hash: "h0", Name: fmt.Sprint("joined-", n), Key: fmt.Appendf(nil, "%032d", n)}
	if all := v.HostTokens(); len(all) > 0 {
		x := all[w.chance.IntN(len(all))]
		cmd.Token, cmd.Hash = x.ID, x.Hash
	}
	if w.oneIn(2) {
		cmd.Location = w.locationName()
	}
	return cmd
}

func (w *Wishes) joined(v *cell.View) string {
	all := v.Hosts()
	if len(all) == 0 {
		return "none"
	}
	return all[w.chance.IntN(len(all))].ID
}

func attachHost(w *Wishes, v *cell.View) kernel.Command {
	return &hosts.Attach{Host: w.joined(v), Signed: w.now + domain.Time(w.chance.IntN(3)), IP: fmt.Sprint("10.2.0.", w.chance.IntN(3))}
}

func describeHost(w *Wishes, v *cell.View) kernel.Command {
	return &hosts.Describe{Host: w.joined(v), Version: "1", Ports: int32(w.chance.IntN(3)), MemoryMB: 1}
}

func keepHosts(w *Wishes, v *cell.View) kernel.Command {
	return &hosts.Keep{Hosts: []string{w.joined(v), w.joined(v)}}
}

func leaveHost(w *Wishes, v *cell.View) kernel.Command { return &hosts.Leave{Host: w.joined(v)} }

func drainJoinedHost(w *Wishes, v *cell.View) kernel.Command {
	return &hosts.Drain{Host: w.joined(v), Undo: w.oneIn(2)}
}

func revokeHost(w *Wishes, v *cell.View) kernel.Command {
	return &hosts.Revoke{Host: w.joined(v), By: "ops"}
}
