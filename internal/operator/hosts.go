package operator

import (
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/hostproof"
)

// NewHostToken is the body of POST hosts/tokens. It names a fleet, a location or both.
type NewHostToken struct {
	Fleet        string `json:"fleet,omitempty"`
	Location     string `json:"location,omitempty"`
	Uses         uint32 `json:"uses"`         // 1 to hosts.UsesMax
	ValidSeconds int64  `json:"validSeconds"` // 1 second to hosts.ValidMax
}

// HostToken is a join token for hosts. Only the answer to its creation contains Token.
type HostToken struct {
	ID       string    `json:"id"`
	Token    string    `json:"token,omitempty"`
	Fleet    string    `json:"fleet,omitempty"`
	Location string    `json:"location,omitempty"`
	Uses     uint32    `json:"uses"` // remaining uses
	Expires  time.Time `json:"expires"`
	By       string    `json:"by,omitempty"` // principal
}

// Host is a machine whose agent has joined.
type Host struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Location string `json:"location"`
	Fleet    string `json:"fleet,omitempty"` // the only fleet that it may serve
	// State is new before the first connection, ready, silent if the agent has been disconnected for three minutes, drained, releasing while it
	// leaves a fleet, or revoked.
	State        string    `json:"state"`
	Serves       string    `json:"serves,omitempty"`  // current fleet
	Compute      string    `json:"compute,omitempty"` // its name as a compute there
	Joined       time.Time `json:"joined"`
	JoinToken    string    `json:"joinToken"`     // id of the token with which it joined
	Seen         time.Time `json:"seen,omitzero"` // when its agent was last known to be connected, to the minute
	Revoked      time.Time `json:"revoked,omitzero"`
	RevokedBy    string    `json:"revokedBy,omitempty"`
	IP           string    `json:"ip,omitempty"`
	DNS          string    `json:"dns,omitempty"`
	Version      string    `json:"version,omitempty"` // of the agent
	Ports        int32     `json:"ports"`             // in its pool
	MemoryMB     int64     `json:"memoryMB,omitempty"`
	Processes    int       `json:"processes"` // connected server processes
	GameSessions int       `json:"gameSessions"`
	// Metrics are the agent's latest measurements; absent if it is not connected to the node that answers.
	Metrics *agentproto.HostMetrics `json:"metrics,omitempty"`
	// Troubles are the entries of the runtime configuration that do not run as they should, in the agent's latest report.
	Troubles []agentproto.LaunchState `json:"troubles,omitempty"`
	// SharedBy has the addresses of agents that use copies of the same identity and displace each other, as seen by the node that answers. Absent:
	// there is one agent.
	SharedBy []string `json:"sharedBy,omitempty"`
}

// HostList is the answer to GET hosts.
type HostList struct {
	Hosts  []Host      `json:"hosts"`
	Tokens []HostToken `json:"tokens"` // those that can still be used
}

// HostDrain is the body of POST hosts/{host}/drain.
type HostDrain struct {
	Undo bool `json:"undo,omitempty"`
}

// HostNamed is the answer to a change of a host.
type HostNamed struct {
	ID string `json:"id"`
}

// HostsRevoked is the answer to POST hosts/tokens/{id}/revoke-hosts.
type HostsRevoked struct {
	ID    string   `json:"id"`    // of the token
	Hosts []string `json:"hosts"` // ids of the hosts that this request revoked
}

func (d *Door) hostRoutes() {
	d.handle("GET hosts", d.looking(d.listHosts))
	d.handle("POST hosts/tokens", d.forAdmins("make join tokens", d.newHostToken))
	d.handle("POST hosts/tokens/{id}/revoke", d.forAdmins("revoke join tokens", d.revokeHostToken))
	d.handle("POST hosts/tokens/{id}/revoke-hosts", d.forAdmins("revoke hosts", d.revokeHostsOfToken))
	d.handle("POST hosts/{host}/revoke", d.forAdmins("revoke hosts", d.revokeHost))
	d.handle("POST hosts/{host}/drain", d.forAdmins("drain hosts", changing(http.StatusOK, d.drainHost)))
}

func (d *Door) listHosts(w http.ResponseWriter, r *http.Request) {
	list := HostList{Hosts: []Host{}, Tokens: []HostToken{}}
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		all := v.Hosts()
		for i := range all {
			list.Hosts = append(list.Hosts, hostOf(v, &all[i]))
		}
		now := domain.TimeOf(d.engine.Now())
		for _, x := range v.HostTokens() {
			if x.Uses > 0 && x.Expires > now {
				list.Tokens = append(list.Tokens, HostToken{ID: x.ID, Fleet: x.Fleet, Location: x.Location, Uses: x.Uses, Expires: x.Expires.Std(), By: x.By})
			}
		}
		return nil
	})
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	said := map[string]*agentproto.Report{}
	for _, r := range d.reports() {
		said[r.Host] = r
	}
	for i := range list.Hosts {
		if r := said[list.Hosts[i].ID]; r != nil {
			list.Hosts[i].Metrics, list.Hosts[i].Troubles, list.Hosts[i].SharedBy = r.Metrics, troubles(r), r.Shared
		}
	}
	answer(w, http.StatusOK, list)
}

func hostOf(v *cell.View, h *hosts.Host) Host {
	x := Host{
		ID: h.ID, Name: h.Name, Location: h.Location, Fleet: h.Fleet, Joined: h.Joined.Std(), JoinToken: h.Token, RevokedBy: h.RevokedBy, IP: h.IP, DNS: h.DNS,
		Version: h.Version, Ports: h.Ports, MemoryMB: h.MemoryMB, State: v.HostState(h),
	}
	if h.Seen != 0 {
		x.Seen = h.Seen.Std()
	}
	if fleetID, name, ok := v.Serves(h.ID); ok {
		x.Serves, x.Compute = fleetID, name
		if c, ok := v.Compute(fleetID, name); ok {
			x.Processes, x.GameSessions = int(c.Processes), int(c.Hosting)
		}
	}
	if h.Revoked != 0 {
		x.Revoked = h.Revoked.Std()
	}
	return x
}

// newHostToken answers with the token, which is shown only once; answers are not logged.
func (d *Door) newHostToken(w http.ResponseWriter, r *http.Request, by access.Actor, body []byte) error {
	if !d.config.Private(r) {
		answer(w, http.StatusForbidden, Problem{"the answer contains the join token: use https"})
		return nil
	}
	var in NewHostToken
	if err := readKeyBody(body, &in); err != nil {
		return err
	}
	if most := int64(hosts.ValidMax / time.Second); in.ValidSeconds < 1 || in.ValidSeconds > most {
		return domain.Refuse(domain.Invalid, "validSeconds %d: want 1 to %d", in.ValidSeconds, most)
	}
	token, id, hash := hostproof.NewToken()
	cmd := hosts.IssueToken{ID: id, Hash: hash, Fleet: in.Fleet, Location: in.Location, Uses: in.Uses, Valid: time.Duration(in.ValidSeconds) * time.Second, By: by.Cut().Principal}
	if err := d.engine.Do(r.Context(), &cmd); err != nil {
		return err
	}
	d.log.Info("join token for hosts made", "token", id, "fleet", in.Fleet, "location", in.Location, "uses", in.Uses, "principal", by.Principal)
	answer(w, http.StatusCreated, HostToken{ID: id, Token: token, Fleet: in.Fleet, Location: in.Location, Uses: in.Uses, Expires: cmd.Expires.Std(), By: by.Principal})
	return nil
}

func (d *Door) revokeHostToken(w http.ResponseWriter, r *http.Request, by access.Actor, _ []byte) error {
	id := r.PathValue("id")
	if err := d.engine.Do(r.Context(), &hosts.RevokeToken{ID: id}); err != nil {
		return err
	}
	d.log.Info("join token for hosts revoked", "token", id, "principal", by.Principal)
	answer(w, http.StatusOK, HostNamed{id})
	return nil
}

// revokeHostsOfToken voids a token, which may already be gone, and revokes all hosts that joined with it. It voids the token first, so that no host
// joins meanwhile. An interrupted call can be repeated.
func (d *Door) revokeHostsOfToken(w http.ResponseWriter, r *http.Request, by access.Actor, _ []byte) error {
	id := r.PathValue("id")
	voided := d.engine.Do(r.Context(), &hosts.RevokeToken{ID: id})
	if voided != nil && !domain.IsRefused(voided, domain.NotFound) {
		return voided
	}
	var joined []hosts.Host
	if err := d.engine.Read(r.Context(), func(v *cell.View) error { joined = v.HostsOfToken(id); return nil }); err != nil {
		return err
	}
	if len(joined) == 0 && voided != nil {
		return domain.Refuse(domain.NotFound, "there is no join token %.200q, and no host has joined with it", id)
	}
	done := HostsRevoked{ID: id, Hosts: []string{}}
	for i := range joined {
		if joined[i].Revoked != 0 {
			continue
		}
		cmd := hosts.Revoke{Host: joined[i].ID, By: by.Cut().Principal} // one by one: each ends what runs on the host, and has an entry in the audit log
		if err := d.engine.Do(r.Context(), &cmd); err != nil {
			return err
		}
		done.Hosts = append(done.Hosts, cmd.ID)
	}
	d.log.Info("join token for hosts revoked, with the hosts that joined with it", "token", id, "hosts", len(done.Hosts), "principal", by.Principal)
	answer(w, http.StatusOK, done)
	return nil
}

func (d *Door) revokeHost(w http.ResponseWriter, r *http.Request, by access.Actor, _ []byte) error {
	cmd := hosts.Revoke{Host: r.PathValue("host"), By: by.Cut().Principal}
	if err := d.engine.Do(r.Context(), &cmd); err != nil {
		return err
	}
	d.log.Info("host revoked", "host", cmd.ID, "principal", by.Principal)
	answer(w, http.StatusOK, HostNamed{cmd.ID})
	return nil
}

func (d *Door) drainHost(r *http.Request, by access.Actor, in *HostDrain) (any, error) {
	cmd := hosts.Drain{Host: r.PathValue("host"), Undo: in.Undo}
	if err := d.engine.Do(r.Context(), &cmd); err != nil {
		return nil, err
	}
	d.log.Info("drain of a host changed", "host", cmd.ID, "drained", !in.Undo, "principal", by.Principal)
	return HostNamed{cmd.ID}, nil
}
