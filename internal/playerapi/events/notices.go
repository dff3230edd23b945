package events

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Notice writes the number of a notice and the notice itself.
func (w Writer) Notice(x *flow.Noticed) []byte {
	n, err := flow.DecodeNotice(x.Body)
	data := fields{}
	if err != nil {
		w.State.Log.Error("a notice in the outbox cannot be read", "type", x.Type.String(), "error", err)
	} else {
		data = noticeData(x.Type, n)
	}
	return w.tail(flow.CommitName(x.Commit, x.Part), x.At, x.Type.String(), data)
}

// addedPlayer is a player who has joined the game.
type addedPlayer struct {
	PlayerID string `json:"player_id"`
	Team     string `json:"team,omitempty"`
	PartyID  string `json:"party_id,omitempty"`
}

func noticeData(kind flow.NoticeType, n *flow.Notice) fields {
	switch kind {
	case flow.OnPlayersAdded:
		players := []addedPlayer{}
		for _, m := range n.Added {
			players = append(players, addedPlayer{m.Player, m.Team, objects.ID(m.Party)})
		}
		return fields{"players": players}
	case flow.OnPlayerReconnecting:
		return fields{"player_id": n.Player, "attempt": n.Attempt, "player_session_id": objects.ID(n.Session)}
	case flow.OnPlayerSessionSuperseded:
		return fields{"player_id": n.Player, "attempt": n.Attempt, "old": objects.ID(n.Old), "new": objects.ID(n.Session)}
	case flow.OnGameInstanceEnteredMatchmaking, flow.OnGameInstanceLeftMatchmaking:
		x := fields{"matchmaking_id": n.Ticket, "queue": n.Queue}.unlessEmpty("reason", n.Reason)
		if n.Slots > 0 {
			x["slots"] = n.Slots
		}
		return x
	}
	return fields{"player_id": n.Player}.unlessEmpty("reason", n.Reason)
}

// ServerSync writes a number and an OnSync for a game server.
func (w Writer) ServerSync(commit string, data *objects.StartDataAnswer) []byte {
	return w.tail(commit, w.State.Instant(), flow.OnSync.String(), data)
}
