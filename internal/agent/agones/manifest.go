package agones

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
)

// ofMuster begins the names of annotations that describe the game session.
const ofMuster = "muster/"

// GameServer is the part of a GameServer manifest that applies without Kubernetes. A nil GameServer has Agones'
// defaults.
type GameServer struct {
	labels, annotations map[string]string
	health              Health
	counters            map[string]Counter
	lists               map[string]List
	capacity            int64 // of players
}

// manifestMax bounds the file.
const manifestMax = 64 << 10

// defaultHealth has Agones' defaults.
var defaultHealth = Health{Period: 5 * time.Second, Failures: 3, InitialDelay: 5 * time.Second}

// ReadGameServer reads the manifest of a GameServer, or of a Fleet with its template, in JSON.
func ReadGameServer(path string) (*GameServer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(text) > manifestMax {
		return nil, fmt.Errorf("%s: %d bytes; want at most %d", path, len(text), manifestMax)
	}
	gs, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return gs, nil
}

type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Template *manifest `json:"template"` // of a Fleet
		Health   struct {
			Disabled            bool `json:"disabled"`
			PeriodSeconds       int  `json:"periodSeconds"`
			FailureThreshold    int  `json:"failureThreshold"`
			InitialDelaySeconds *int `json:"initialDelaySeconds"`
		} `json:"health"`
		Players struct {
			InitialCapacity int64 `json:"initialCapacity"`
		} `json:"players"`
		Counters map[string]Counter `json:"counters"`
		Lists    map[string]List    `json:"lists"`
	} `json:"spec"`
}

func parse(text []byte) (*GameServer, error) {
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w; want the manifest of a GameServer in JSON, such as yq -o json writes it", err)
	}
	if m.Kind == "Fleet" && m.Spec.Template != nil {
		m = *m.Spec.Template
		m.Kind = "GameServer" // a template has none
	}
	if m.Kind != "GameServer" {
		return nil, fmt.Errorf("kind: %q; want GameServer or Fleet", m.Kind)
	}
	gs := &GameServer{
		labels: m.Metadata.Labels, annotations: m.Metadata.Annotations, health: defaultHealth, counters: m.Spec.Counters, lists: m.Spec.Lists, capacity: m.Spec.Players.InitialCapacity,
	}
	h := m.Spec.Health
	const secondsMax = 24 * 3600
	delay := int(defaultHealth.InitialDelay / time.Second)
	if h.InitialDelaySeconds != nil {
		delay = *h.InitialDelaySeconds
	}
	for name, seconds := range map[string]int{"periodSeconds": h.PeriodSeconds, "failureThreshold": h.FailureThreshold, "initialDelaySeconds": delay} {
		if seconds < 0 || seconds > secondsMax {
			return nil, fmt.Errorf("spec.health.%s: %d; want 0 to %d", name, seconds, secondsMax)
		}
	}
	gs.health.Disabled, gs.health.InitialDelay = h.Disabled, time.Duration(delay)*time.Second
	if h.PeriodSeconds > 0 {
		gs.health.Period = time.Duration(h.PeriodSeconds) * time.Second
	}
	if h.FailureThreshold > 0 {
		gs.health.Failures = h.FailureThreshold
	}
	for name, c := range gs.counters {
		if c.Count < 0 || c.Count > c.Capacity {
			return nil, fmt.Errorf("spec.counters.%s: count %d of %d; want 0 to the capacity", name, c.Count, c.Capacity)
		}
	}
	for name, l := range gs.lists {
		if l.Capacity < 0 || l.Capacity > listMax || int64(len(l.Values)) > l.Capacity {
			return nil, fmt.Errorf("spec.lists.%s: %d values of %d; want a capacity of 0 to %d, and no more values", name, len(l.Values), l.Capacity, listMax)
		}
	}
	for _, pairs := range []map[string]string{gs.labels, gs.annotations} {
		for key := range pairs {
			if strings.HasPrefix(key, ofMuster) {
				return nil, fmt.Errorf("metadata: %q; want none that begin with %s", key, ofMuster)
			}
		}
	}
	return gs, nil
}

// begin returns the initial memory of a process.
func (gs *GameServer) begin() Memory {
	m := Memory{
		State: Scheduled, Labels: map[string]string{}, Annotations: map[string]string{}, Counters: map[string]Counter{}, Lists: map[string]List{PlayersList: {}}, Health: defaultHealth,
	}
	if gs != nil {
		maps.Copy(m.Labels, gs.labels)
		maps.Copy(m.Annotations, gs.annotations)
		maps.Copy(m.Counters, gs.counters)
		maps.Copy(m.Lists, gs.lists)
		m.Health, m.Players.Capacity = gs.health, gs.capacity
	}
	return m
}
