package hosts

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// View reads the room's state. It returns copies, whose keys must not be changed.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Host returns a host, including a revoked one.
func (v *View) Host(id string) (Host, bool) {
	r, ok := v.c.Records.Find(id)
	if !ok {
		return Host{}, v.Found(false, 0)
	}
	h := *v.c.Records.Get(r)
	return h, v.Found(true, h.Changed)
}

// HostNamed returns a host by its id or name, as commands find it: a revoked one only if no other host has the name.
func (v *View) HostNamed(name string) (Host, bool) {
	v.SawAll()
	h, err := v.c.named(name)
	return h, err == nil
}

// Hosts returns all hosts, including revoked ones, in the order in which they joined.
func (v *View) Hosts() []Host {
	v.SawAll()
	return v.c.Records.Page(catalog.Place{}, HostsMax, nil)
}

// HostsAfter returns a page of hosts in the order in which they joined, starting after the host id; if id is "" or unknown, starting with the first.
func (v *View) HostsAfter(id string, most int) []Host {
	v.SawAll()
	after := catalog.Place{}
	if r, ok := v.c.Records.Find(id); ok {
		after = place(v.c.Records.Get(r))
	}
	return v.c.Records.Page(after, most, nil)
}

// HostsOfToken returns the hosts that joined with a token, including revoked ones.
func (v *View) HostsOfToken(id string) []Host {
	v.SawAll()
	return v.c.Records.Page(catalog.Place{}, HostsMax, func(h *Host) bool { return h.Token == id })
}

// HostTokens returns the tokens in the state, oldest first. They include used up and expired ones until the next token is issued.
func (v *View) HostTokens() []Token {
	v.SawAll()
	return slices.Clone(v.c.tokens)
}

// HostCounts counts the records of the room.
func (v *View) HostCounts() []kernel.RecordCount {
	return []kernel.RecordCount{
		{Kind: "hosts", Count: v.c.Records.Len(), Most: HostsMax}, {Kind: "host_join_tokens", Count: len(v.c.tokens), Most: TokensMax},
	}
}
