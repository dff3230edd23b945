package hosts

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// find returns a host that may connect, by id.
func (c *State) find(id string) (Host, error) {
	r, ok := c.Records.Find(id)
	if !ok {
		return Host{}, domain.Refuse(domain.NotFound, "there is no host %.200q", id)
	}
	if h := *c.Records.Get(r); h.Revoked == 0 {
		return h, nil
	}
	return Host{}, domain.Refuse(domain.Conflict, "host %s was revoked", id)
}

// named returns a host by its id or name.
func (c *State) named(name string) (found Host, err error) {
	if r, ok := c.Records.Find(name); ok {
		return *c.Records.Get(r), nil
	}
	c.Records.Since(catalog.Place{}, func(h *Host) bool {
		if h.Name == name && (found.ID == "" || found.Revoked != 0) {
			found = *h
		}
		return true
	})
	if found.ID == "" {
		return found, domain.Refuse(domain.NotFound, "there is no host %.200q", name)
	}
	return found, nil
}

// Attach records that the agent of a host is about to connect. It is refused unless the signature is newer than the previous
// one.
type Attach struct {
	Host    string
	Signed  domain.Time // the host's time in the signature
	IP, DNS string      // where players reach the host: one of them

	// Result
	Name string
}

// Decide emits HostChanged.
func (cmd *Attach) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	h, err := t.find(cmd.Host)
	switch {
	case err != nil:
		return err
	case cmd.Signed <= h.Signed:
		return domain.Refuse(domain.Conflict, "the signature of host %s was made at %s, not after that of its previous connection: it is a copy, or the host's clock was set back",
			h.ID, cmd.Signed.Std().Format("2006-01-02T15:04:05.000Z"))
	case len(cmd.IP) > textMax || len(cmd.DNS) > textMax || cmd.IP == "" && cmd.DNS == "":
		return domain.Refuse(domain.Invalid, "address %.50q, name %.50q: want one of at most %d bytes", cmd.IP, cmd.DNS, textMax)
	}
	h.Signed, h.Seen, h.SilentBy, h.IP, h.DNS = cmd.Signed, t.Now, t.Contact.Add(SilentAfter), cmd.IP, cmd.DNS
	cmd.Name = h.Name
	if err := t.fleets.Admit(&h); err != nil {
		return err
	}
	t.Emit(&HostChanged{h})
	return nil
}

// Describe stores what an agent reports about its host.
type Describe struct {
	Host     string
	Version  string
	Ports    int32 // in the pool for server processes
	MemoryMB int64 // 0: unknown
}

// Decide emits HostChanged if anything is new.
func (cmd *Describe) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	h, err := t.find(cmd.Host)
	if err != nil {
		return err
	}
	cmd.Version = strings.ToValidUTF8(cmd.Version[:min(len(cmd.Version), textMax)], "")
	if h.Version == cmd.Version && h.Ports == cmd.Ports && h.MemoryMB == cmd.MemoryMB {
		return nil
	}
	h.Version, h.Ports, h.MemoryMB = cmd.Version, max(cmd.Ports, 0), max(cmd.MemoryMB, 0)
	t.Emit(&HostChanged{h})
	return nil
}

// Keep records that the agents of hosts are connected. Hosts that were revoked meanwhile are skipped.
type Keep struct{ Hosts []string }

// Decide emits HostsSeen.
func (cmd *Keep) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	var known []string
	for _, id := range cmd.Hosts {
		if _, err := t.find(id); err == nil {
			known = append(known, id)
		}
	}
	if len(known) > 0 {
		t.Emit(&HostsSeen{Hosts: known, SilentBy: t.Contact.Add(SilentAfter)})
	}
	return nil
}

// Leave records that the agent of a host has ended together with its server processes: the host is silent at once. It does nothing if the host has
// connected again since.
type Leave struct {
	Host   string
	Signed domain.Time // the host's time in the signature of the agent's last connection; 0: any, from a node of an earlier release
}

// Decide emits HostChanged, unless the host is silent.
func (cmd *Leave) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	h, err := t.find(cmd.Host)
	if err == nil && !h.Silent() && (cmd.Signed == 0 || h.Signed <= cmd.Signed) {
		h.SilentBy = 0
		t.Emit(&HostChanged{h})
	}
	return err
}

// Drain drains a host, so that it gets no new game sessions and its current ones finish; with Undo, the host serves again.
type Drain struct {
	Host string // id or name
	Undo bool

	// Result
	ID string
}

// Decide emits HostChanged, unless the host is drained already.
func (cmd *Drain) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	h, err := t.named(cmd.Host)
	if err == nil {
		h, err = t.find(h.ID)
	}
	if err != nil {
		return err
	}
	cmd.ID = h.ID
	if h.Drained != cmd.Undo {
		return nil
	}
	h.Drained = !cmd.Undo
	t.Emit(&HostChanged{h})
	t.fleets.Drain(&h)
	return nil
}

// Revoke permanently revokes a host's permission to connect. Its game sessions end, because what runs on it is no longer
// trusted.
type Revoke struct {
	Host string // id or name
	By   string // principal

	// Result
	ID string
}

// Decide emits HostChanged. A host that is revoked already stays as it is.
func (cmd *Revoke) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	h, err := t.named(cmd.Host)
	if err != nil {
		return err
	}
	cmd.ID = h.ID
	if h.Revoked != 0 {
		return nil
	}
	h.Revoked, h.RevokedBy, h.SilentBy = t.Now, strings.ToValidUTF8(cmd.By[:min(len(cmd.By), textMax)], ""), 0
	t.Emit(&HostChanged{h})
	t.fleets.Remove(&h)
	return nil
}
