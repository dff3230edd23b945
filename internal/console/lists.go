package console

import (
	"net/http"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
)

func (d *Door) queues(r *http.Request) (*content, error) {
	var all []placement.Queue
	err := d.engine.Read(r.Context(), func(v *cell.View) error { all = v.Queues("", catalogMost); return nil })
	return &content{Title: "Queues", Section: "queues", page: "queues", Data: all, Command: "aws gamelift describe-game-session-queues"}, err
}

type configurationRow struct {
	matchmaking.Configuration
	Active int // tickets
}

func (d *Door) matchmaking(r *http.Request) (*content, error) {
	var all []configurationRow
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		for _, c := range v.Configurations("", "", catalogMost) {
			all = append(all, configurationRow{c, v.TicketCounts(c.Name).Active})
		}
		return nil
	})
	return &content{Title: "Matchmaking", Section: "matchmaking", page: "matchmaking", Data: all, Command: "aws gamelift describe-matchmaking-configurations"}, err
}

type hostRow struct {
	hosts.Host
	State  string
	Serves string // fleet, at present
}

func (d *Door) hosts(r *http.Request) (*content, error) {
	var all []hostRow
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		for _, h := range v.Hosts() {
			serves, _, _ := v.Serves(h.ID)
			all = append(all, hostRow{h, v.HostState(&h), serves})
		}
		return nil
	})
	return &content{Title: "Hosts", Section: "hosts", page: "hosts", Data: all, Command: "muster hosts"}, err
}
