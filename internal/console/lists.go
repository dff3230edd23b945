package console

import (
	"net/http"
	"net/url"

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

// hostsPage is how many hosts a page shows.
const hostsPage = 200

type hostList struct {
	Hosts []hostRow
	Next  string // URL of the next page; empty: this is the last one
}

func (d *Door) hosts(r *http.Request) (*content, error) {
	var x hostList
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		all := v.HostsAfter(r.URL.Query().Get("after"), hostsPage+1)
		if len(all) > hostsPage {
			all = all[:hostsPage]
			x.Next = Prefix + "/hosts?after=" + url.QueryEscape(all[hostsPage-1].ID)
		}
		for _, h := range all {
			serves, _, _ := v.Serves(h.ID)
			x.Hosts = append(x.Hosts, hostRow{h, v.HostState(&h), serves})
		}
		return nil
	})
	return &content{Title: "Hosts", Section: "hosts", page: "hosts", Data: &x, Command: "muster hosts"}, err
}
