package events

import (
	"encoding/json"
	"strconv"

	"github.com/musterhq/muster/internal/domain/flow"
)

// Studio writes an event for the studio, once for all players who receive it.
func (w Writer) Studio(e *flow.StudioEvent) []byte {
	type hearer struct {
		PlayerID string `json:"player_id"`
		Seq      uint64 `json:"seq,omitempty"`
	}
	players := make([]hearer, len(e.To))
	for i, to := range e.To {
		players[i] = hearer{to.Player, to.Seq}
	}
	m, err := flow.DecodeMessage(e.Body)
	var data any = fields{}
	if err != nil {
		w.State.Log.Error("an event for the studio cannot be read", "number", e.No, "type", e.Type.String(), "error", err)
	} else {
		data = w.studioData(e.Type, m)
	}
	names, _ := json.Marshal(players)
	b := strconv.AppendUint([]byte(`{"no":`), e.No, 10)
	b = append(append(b, `,"players":`...), names...)
	return append(append(b, ','), w.tail(flow.CommitName(e.Commit, e.Part), e.At, e.Type.String(), data)...)
}

// studioData returns the data of an event without connection tokens.
func (w Writer) studioData(kind flow.MessageType, m *flow.Message) any {
	if kind == flow.OnHostConnectionDetailsReceived && m.Host != nil {
		host := w.State.Objects.Host("", m.Host)
		host.ConnectionToken = ""
		return HostDetailsData{*host, m.Reason.String()}
	}
	return w.data(kind, m, "")
}
