//go:build !quick

package agones

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
	"github.com/musterhq/muster/internal/linkclient"
)

// Names with a meaning in Agones.
const (
	ofAgones      = "agones.dev/"
	ofSDK         = ofAgones + "sdk-" // prefix of the names that a game sets
	lastAllocated = ofAgones + "last-allocated"
)

// Annotations that describe the game session. All start with ofMuster.
const (
	sessionID    = ofMuster + "game-session-id"
	sessionName  = ofMuster + "game-session-name"
	sessionData  = ofMuster + "game-session-data"
	matchData    = ofMuster + "matchmaker-data"
	maxPlayers   = ofMuster + "maximum-player-session-count"
	updateReason = ofMuster + "update-reason"
)

// Forms that Kubernetes allows.
var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,57}[A-Za-z0-9])?$`) // 63 characters with sdk- before it
	labelForm = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`)
)

func (p *Process) setLabel(in *sdk.KeyValue) (proto.Message, error) {
	if !labelForm.MatchString(in.Value) {
		return invalid("value: %.100q; want up to 63 letters, digits, -, _ and ., with a letter or digit at both ends", in.Value)
	}
	return p.set(in, func(m *Memory) map[string]string { return m.Labels })
}

func (p *Process) setAnnotation(in *sdk.KeyValue) (proto.Message, error) {
	return p.set(in, func(m *Memory) map[string]string { return m.Annotations })
}

func (p *Process) set(in *sdk.KeyValue, of func(*Memory) map[string]string) (proto.Message, error) {
	if !nameForm.MatchString(in.Key) {
		return invalid("key: %.100q; want 1 to 59 letters, digits, -, _ and ., with a letter or digit at both ends", in.Key)
	}
	err := p.change(func(m *Memory) error {
		pairs, key := of(m), ofSDK+in.Key
		before, known := pairs[key]
		if !known && len(pairs) >= pairsMax {
			return status.Errorf(codes.ResourceExhausted, "key: %d of them are set; want at most that many", pairsMax)
		}
		if err := m.room(len(in.Value) - len(before) + len(key)); err != nil {
			return err
		}
		pairs[key] = in.Value
		return nil
	})
	if err != nil {
		return nil, err
	}
	return new(sdk.Empty), nil
}

// room returns an error if the game would exceed its share of the memory with more bytes.
func (m *Memory) room(more int) error {
	data := 0
	for key, value := range m.Annotations {
		if strings.HasPrefix(key, ofMuster) {
			data += len(value)
		}
	}
	if size := m.size() - data + more; size > memoryMax {
		return status.Errorf(codes.ResourceExhausted, "%d bytes in labels, annotations, lists and players; want at most %d", size, memoryMax)
	}
	return nil
}

// begin makes a game session the current one of the process.
func (m *Memory) begin(g *linkclient.GameSession, now time.Time) {
	maps.DeleteFunc(m.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, ofMuster) || slices.Contains(m.Given, key) })
	maps.DeleteFunc(m.Labels, func(key, _ string) bool { return slices.Contains(m.Given, key) })
	m.Given = nil
	m.Session, m.Active, m.Seats, m.Leaving = g.GameSessionId, false, nil, false
	m.describe(g)
	m.Address = g.IpAddress
	if g.DnsName != "" {
		m.Address = g.DnsName
	}
	m.allocated(now)
}

// describe writes the service's description of the game session to the places where an Agones server looks for its
// allocation.
func (m *Memory) describe(g *linkclient.GameSession) {
	for key, value := range g.GameProperties {
		if !strings.HasPrefix(key, ofAgones) && !strings.HasPrefix(key, ofMuster) {
			m.Labels[key], m.Annotations[key] = value, value
			if !slices.Contains(m.Given, key) {
				m.Given = append(m.Given, key)
			}
		}
	}
	m.Annotations[sessionID], m.Annotations[sessionName], m.Annotations[maxPlayers] = g.GameSessionId, g.GameSessionName, strconv.Itoa(g.MaximumPlayerSessionCount)
	m.Annotations[sessionData], m.Annotations[matchData] = g.GameSessionData, g.MatchmakerData
	m.Players.Capacity = int64(g.MaximumPlayerSessionCount)
	if l, ok := m.Lists[PlayersList]; ok {
		m.Lists[PlayersList] = List{Capacity: min(listMax, int64(g.MaximumPlayerSessionCount)), Values: l.Values}
	}
}

func (p *Process) getGameServer(*sdk.Empty) (proto.Message, error) {
	m, _ := p.look()
	return m.gameServer(&p.config), nil
}

// gameServer describes the process in Agones' form.
func (m *Memory) gameServer(c *Config) *sdk.GameServer {
	gs := &sdk.GameServer{
		ObjectMeta: &sdk.GameServer_ObjectMeta{
			Name: c.ID, Namespace: "default", Uid: c.ID, ResourceVersion: strconv.FormatInt(m.Version, 10), Generation: m.Version,
			CreationTimestamp: c.Started.Unix(), Labels: m.Labels, Annotations: m.Annotations,
		},
		Spec: &sdk.GameServer_Spec{Health: &sdk.GameServer_Spec_Health{
			Disabled: m.Health.Disabled, PeriodSeconds: int32(m.Health.Period / time.Second), FailureThreshold: int32(m.Health.Failures),
			InitialDelaySeconds: int32(m.Health.InitialDelay / time.Second),
		}},
		Status: &sdk.GameServer_Status{
			State: string(m.State), Address: m.Address,
			Players:  &sdk.GameServer_Status_PlayerStatus{Count: int64(len(m.Players.Values)), Capacity: m.Players.Capacity, Ids: m.Players.Values},
			Counters: map[string]*sdk.GameServer_Status_CounterStatus{}, Lists: map[string]*sdk.GameServer_Status_ListStatus{},
		},
	}
	if !m.DeletedAt.IsZero() {
		gs.ObjectMeta.DeletionTimestamp = m.DeletedAt.Unix()
	}
	ports := c.gamePorts()
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		gs.Status.Ports = append(gs.Status.Ports, &sdk.GameServer_Status_Port{Name: name, Port: int32(ports[name])})
	}
	for name, counter := range m.Counters {
		gs.Status.Counters[name] = &sdk.GameServer_Status_CounterStatus{Count: counter.Count, Capacity: counter.Capacity}
	}
	for name, list := range m.Lists {
		gs.Status.Lists[name] = &sdk.GameServer_Status_ListStatus{Capacity: list.Capacity, Values: list.Values}
	}
	return gs
}
