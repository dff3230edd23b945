package console

import (
	"net/http"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
)

type overview struct {
	*attention.Found
	Fleets  int
	Runs    hosting.Utilization
	Tickets int // active

	Backup domain.Time // the last one; 0: none is known
	Secret access.SecretSummary
}

const (
	overviewFleets = 500  // whose figures are summed
	catalogMost    = 1000 // queues and configurations that a page looks at
)

func (d *Door) overview(r *http.Request) (*content, error) {
	found, err := d.config.Attention.Find(r.Context())
	if err != nil {
		return nil, err
	}
	x := overview{Found: found}
	err = d.engine.Read(r.Context(), func(v *cell.View) error {
		x.Fleets = v.Totals().Fleets
		if b, ok := v.LastBackup(); ok {
			x.Backup = b.At
		}
		x.Secret = v.SecretSummary()
		for _, f := range v.Fleets(0, "", overviewFleets) {
			for _, p := range v.Places(f.ID) {
				x.Runs.Add(&p.Sessions)
				x.Runs.Computes += p.Hosts.Computes
				x.Runs.ComputesWithGame += p.Hosts.ComputesWithGame
				x.Runs.Processes += p.Hosts.Processes
				x.Runs.IdleProcesses += p.Hosts.Idle
			}
		}
		for _, m := range v.Configurations("", "", catalogMost) {
			x.Tickets += v.TicketCounts(m.Name).Active
		}
		return nil
	})
	return &content{Title: "Overview", Section: "overview", page: "overview", Data: &x, Command: "muster top --once"}, err
}

// LinkTo returns the page about an item's subject; empty if there is none.
func (*overview) LinkTo(x *attention.Item) string {
	path := objectPath(x.Kind, x.ID)
	if x.Kind == "access key" {
		path = keyPath(x.ID)
	}
	if path == "" {
		return ""
	}
	return Prefix + "/" + path
}
