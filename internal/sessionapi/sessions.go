package sessionapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// sessionConfig is a game session for scripts.
type sessionConfig struct {
	SessionID         string            `json:"sessionId"`
	SessionName       string            `json:"sessionName"`
	Status            string            `json:"status"`
	StatusReason      string            `json:"statusReason"`
	CreatorID         string            `json:"creatorId"`
	CreationTime      int64             `json:"creationTime"`    // Unix milliseconds
	TerminationTime   int64             `json:"terminationTime"` // 0 while it lives
	SessionProperties map[string]string `json:"sessionProperties"`
	MatchmakingData   string            `json:"matchmakingData"`
	DNSName           string            `json:"dnsName"`
	IPAddress         string            `json:"ipAddress"`
	Port              int               `json:"port"`
	MaxPlayer         int32             `json:"maxPlayer"`
	CurrentPlayer     int32             `json:"currentPlayer"`
}

// statusNames are the names that the engine uses.
var statusNames = map[session.Status]string{
	session.Activating: "Activating", session.Active: "Active", session.Terminating: "Terminating", session.Terminated: "Terminated",
}

func configOf(g *session.GameSession) sessionConfig {
	c := sessionConfig{
		SessionID: g.ID.ARN(g.Region), SessionName: g.Name, Status: statusNames[g.Status], StatusReason: "NotSet",
		CreatorID: g.Creator, CreationTime: int64(g.Created), TerminationTime: int64(g.Ended),
		SessionProperties: make(map[string]string, len(g.Properties)), MatchmakingData: g.MatchmakerData,
		DNSName: g.DNSName, IPAddress: g.IPAddress, Port: int(g.Port), MaxPlayer: g.PlayersMax, CurrentPlayer: g.Seated(),
	}
	if g.StatusReason == session.Interrupted { // the only other reason that the engine names
		c.StatusReason = "Interrupted"
	}
	for _, p := range g.Properties {
		c.SessionProperties[p.Key] = p.Value
	}
	return c
}

const sessionWanted = "a session id as CreateSession and SearchSessions give it: arn:…:gamesession/…"

// gameSessionID returns the id in an ARN.
func gameSessionID(arn string) (session.ID, error) {
	id, ok := session.CutARN(arn)
	if !ok || !strings.HasPrefix(arn, "arn:") {
		return "", invalid("sessionId", arn, sessionWanted)
	}
	return id, nil
}

type createSessionRequest struct {
	FleetID           string            `json:"fleetId"`
	AliasID           string            `json:"aliasId"`
	Location          string            `json:"location"`
	CreatorID         string            `json:"creatorId"`
	SessionName       string            `json:"sessionName"`
	SessionProperties map[string]string `json:"sessionProperties"`
	SessionData       string            `json:"sessionData"`
	MaxPlayer         *int32            `json:"maxPlayer"`
	IdempotencyToken  string            `json:"idempotencyToken"`

	properties []session.Property
}

func (in *createSessionRequest) check(c *checks) {
	c.fleet(in.FleetID, in.AliasID)
	c.form("location", in.Location, locationForm, "1 to 64 letters, digits and dashes")
	c.text("creatorId", in.CreatorID, textMax)
	c.text("sessionName", in.SessionName, textMax)
	in.properties = c.properties("sessionProperties", in.SessionProperties)
	c.text("sessionData", in.SessionData, dataMax)
	c.maxPlayer(in.MaxPlayer)
	c.form("idempotencyToken", in.IdempotencyToken, idForm, idWanted)
}

type createSessionAnswer struct {
	Result        string        `json:"result"` // the session id
	SessionConfig sessionConfig `json:"sessionConfig"`
}

// createSession assigns a new game session to a free server process. It does not wait until the server has activated it.
func (d *Door) createSession(ctx context.Context, _ *request, in *createSessionRequest) (*createSessionAnswer, error) {
	f, err := d.fleetOf(ctx, in.FleetID, in.AliasID)
	if err != nil {
		return nil, err
	}
	if most := d.engine.CellConfig().Hosting.PlayersInGameMax; *in.MaxPlayer > most {
		return nil, invalid("maxPlayer", *in.MaxPlayer, fmt.Sprintf("at most %d", most))
	}
	cmd := hosting.CreateGameSession{
		Fleet: f.ID, Alias: lastPart(in.AliasID), Location: in.Location, Title: in.SessionName, Data: in.SessionData, Properties: in.properties,
		Creator: in.CreatorID, PlayersMax: *in.MaxPlayer,
	}
	// The script interface's request has no location. If the fleet has only one location, that one is meant.
	if cmd.Location == "" && len(f.Locations) == 1 {
		cmd.Location = f.Locations[0].Name
	}
	if _, ok := f.HasLocation(cmd.Location); !ok {
		wanted := "one of the fleet's locations: " + locationNames(&f)
		if cmd.Location == "" {
			return nil, missing("location", wanted)
		}
		return nil, invalid("location", cmd.Location, wanted)
	}
	if in.IdempotencyToken != "" {
		cmd.Choose(in.IdempotencyToken)
	} else {
		cmd.Name = session.NameID(newID()).String()
	}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	config := configOf(&cmd.Game)
	return &createSessionAnswer{config.SessionID, config}, nil
}

// ended reports that a game session has ended where the core, which no longer has archived ones, reports that it does not exist.
func (d *Door) ended(ctx context.Context, id session.ID, refused error) error {
	if !domain.IsRefused(refused, domain.NotFound) {
		return refused
	}
	g, err := d.engine.GameSession(ctx, id)
	if err != nil {
		return err // NotFound as well, or worse
	}
	return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", id, g.Status)
}
