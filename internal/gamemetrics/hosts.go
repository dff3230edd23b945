package gamemetrics

import (
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
)

// HostUse is an agent's measurement of its host, which serves a fleet as a compute.
type HostUse struct {
	Fleet, Compute            string
	CPUPercent, MemoryPercent float64
	NetworkIn, NetworkOut     int64 // bytes since the host started
	DiskRead, DiskWritten     int64 // bytes since then
	DiskReads, DiskWrites     int64 // operations since then
}

// hostKept is how long the counters of a host are remembered without a report: an agent that reconnects within this time loses no bytes.
const hostKept = 10 * time.Minute

// use is the average use of the hosts of one or more places.
type use struct {
	hosts       int
	cpu, memory float64 // sums of percentages
}

func (u use) plus(x use) use { return use{u.hosts + x.hosts, u.cpu + x.cpu, u.memory + x.memory} }

// placed is a report with the location of its host.
type placed struct {
	HostUse
	location string
}

// counted has the last counters of a host.
type counted struct {
	HostUse
	seen time.Time
}

func (s *sample) readHosts(v *cell.View, all []HostUse) {
	s.uses = map[[2]string]use{}
	places := map[[2]string]bool{}
	for i := range s.places {
		places[[2]string{s.places[i].Fleet, s.places[i].Location}] = true
	}
	for _, h := range all {
		c, ok := v.Compute(h.Fleet, h.Compute)
		if !ok {
			continue
		}
		at := [2]string{h.Fleet, c.Location}
		if !places[at] { // not among the places with series of their own
			at = [2]string{Other, Other}
		}
		s.uses[at] = s.uses[at].plus(use{1, h.CPUPercent, h.MemoryPercent})
		s.hosts = append(s.hosts, placed{h, c.Location})
	}
}

// countHosts adds what hosts have read, written, received and sent since their last reports. A new or restarted host begins at its current
// counters. The caller holds r.mu.
func (r *Recorder) countHosts(s *sample) {
	now := r.config.Engine.Now()
	for _, h := range s.hosts {
		of := [2]string{h.Fleet, h.Compute}
		was, known := r.hosts[of]
		r.hosts[of] = counted{h.HostUse, now}
		if !known {
			was.HostUse = h.HostUse
		}
		for _, x := range []struct {
			of       *Definition
			was, now int64
		}{
			{networkIn, was.NetworkIn, h.NetworkIn}, {networkOut, was.NetworkOut, h.NetworkOut}, {diskRead, was.DiskRead, h.DiskRead}, {diskWritten, was.DiskWritten, h.DiskWritten},
			{diskReads, was.DiskReads, h.DiskReads}, {diskWrites, was.DiskWrites, h.DiskWrites},
		} {
			r.add(x.of, h.Fleet, h.location, float64(max(0, x.now-x.was)))
		}
	}
	for of, x := range r.hosts {
		if now.Sub(x.seen) > hostKept {
			delete(r.hosts, of)
		}
	}
}
