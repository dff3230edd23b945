package operator

import (
	"cmp"
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// playersMax is the most player sessions in one time line.
const playersMax = 500

// explainGameSession explains a game session, given its ARN or the part after "gamesession/".
func (d *Door) explainGameSession(ctx context.Context, id string) (*Explanation, error) {
	g, err := d.engine.GameSession(ctx, session.IDOf(id))
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "game-session", ID: string(g.ID), Status: g.Status.String(), Why: whyGameSession(&g)}
	x.fact("name", g.Name)
	x.fact("process", g.FleetID+"/"+g.ComputeName+"/"+g.ProcessID)
	x.fact("location", g.Location)
	if g.Live() {
		x.fact("seats", seatsOf(&g))
	}
	if g.DenyPlayers {
		x.fact("player sessions", "denied")
	}
	x.fact("placement", g.Placement)
	x.fact("creator", g.Creator)
	gameMoments(x, &g)
	players, more, err := d.engine.PlayersIn(ctx, g.ID, 0, engine.PlayerPlace{}, playersMax)
	if err != nil {
		return nil, err
	}
	for i := range players {
		playerSessionMoments(x, &players[i], "player "+players[i].Player)
	}
	if more {
		x.fact("player sessions shown", fmt.Sprintf("the first %d", playersMax))
	}
	return x.sorted(), nil
}

func playerSessionMoments(x *Explanation, p *hosting.PlayerSession, who string) {
	x.moment(p.Created, "PLAYER_RESERVED", who)
	x.moment(p.Accepted, "PLAYER_CONNECTED", who)
	x.moment(p.Ended, "PLAYER_"+p.Status.String(), who)
}

// gameMoments adds the life of a game session.
func gameMoments(x *Explanation, g *session.GameSession) {
	who := "process " + g.ProcessID + " on compute " + g.ComputeName
	x.moment(g.Created, "GAME_SESSION_CREATED", "for "+who)
	x.moment(g.PromptedAt, "GAME_SESSION_PUSHED", "to "+who)
	x.moment(g.ActivatedAt, "GAME_SESSION_ACTIVATED", "by "+who)
	x.moment(g.TerminatingAt, "GAME_SESSION_TERMINATING", "the process was asked to end")
	exitMoment(x, g.Exit)
	x.moment(g.Ended, "GAME_SESSION_ENDED", causeOf(g))
}

func whyGameSession(g *session.GameSession) string {
	switch g.Status {
	case session.Activating:
		if !g.Prompted {
			return "The server process does not have it yet, because it is not connected at the moment."
		}
		return "The server process has received it, and has not activated it yet."
	case session.Active:
		return "It is running."
	case session.Terminating:
		return "The server process was asked to end, and has not ended yet."
	default:
		return "It ended: " + causeOf(g) + "."
	}
}

// causes describes why a game session ended.
var causes = map[session.EndCause]string{
	session.EndedByServer:      "its server process ended in good order",
	session.EndedByCrash:       "its server process lost its connection and did not come back",
	session.EndedByReplacement: "another process took the id of its server process",
	session.EndedUnhealthy:     "its server process was unhealthy or silent for too long, and did not end when told to",
	session.EndedByForce:       "its server process was told to end and did not",
	session.EndedWithCompute:   "its compute, location or fleet was removed",
	session.EndedNotActivated:  "its server process did not activate it in time",
	session.EndedWithPlacement: "its placement ended before it was active",
}

// causeOf describes why a game session ended. An agent's observation of its server process tells more than the service can
// know.
func causeOf(g *session.GameSession) string {
	if g.Exit != nil {
		return "its server process ended: " + g.Exit.How()
	}
	return causeInWords(g.Cause)
}

func causeInWords(c session.EndCause) string {
	return cmp.Or(causes[c], "the reason was not recorded") // by an earlier release
}

// seatsOf describes how many seats are taken, and how many of them are held for disconnected players.
func seatsOf(g *session.GameSession) string {
	text := fmt.Sprintf("%d held of %d", g.SeatsHeld, g.PlayersMax)
	if g.SeatsEmpty > 0 {
		text += fmt.Sprintf(", %d of them kept for disconnected players", g.SeatsEmpty)
	}
	return text
}
