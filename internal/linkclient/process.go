package linkclient

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// Activate reports that the process is ready to host a game session.
func (c *Client) Activate(ctx context.Context, port int, logPaths ...string) error {
	logs := "null" // as the Go SDK writes an empty list
	if len(logPaths) > 0 {
		quoted := make([]string, len(logPaths))
		for i, p := range logPaths {
			quoted[i] = Text(p)
		}
		logs = "[" + strings.Join(quoted, ",") + "]"
	}
	_, err := c.Do(ctx, "ActivateServerProcess", `"SdkVersion":"5.5.0","SdkLanguage":"Go","SdkToolName":"","SdkToolVersion":"","Port":`+
		strconv.Itoa(port)+`,"LogPaths":`+logs)
	return err
}

// Heartbeat reports the process's health.
func (c *Client) Heartbeat(ctx context.Context, healthy bool) error {
	_, err := c.Do(ctx, "HeartbeatServerProcess", HealthMembers(healthy))
	return err
}

// HealthMembers returns the members of a heartbeat, for Go.
func HealthMembers(healthy bool) string { return `"HealthStatus":` + strconv.FormatBool(healthy) }

// ActivateGameSession reports that players may connect.
func (c *Client) ActivateGameSession(ctx context.Context, gameSession string) error {
	_, err := c.Do(ctx, "ActivateGameSession", GameSessionMembers(gameSession))
	return err
}

// GameSessionMembers returns the members of requests that name only a game session, for Go.
func GameSessionMembers(gameSession string) string { return `"GameSessionId":` + Text(gameSession) }

// AcceptPlayer reports that a player with a reservation has connected.
func (c *Client) AcceptPlayer(ctx context.Context, gameSession, playerSession string) error {
	_, err := c.Do(ctx, "AcceptPlayerSession", PlayerMembers(gameSession, playerSession))
	return err
}

// RemovePlayer reports that a player has left.
func (c *Client) RemovePlayer(ctx context.Context, gameSession, playerSession string) error {
	_, err := c.Do(ctx, "RemovePlayerSession", PlayerMembers(gameSession, playerSession))
	return err
}

// PlayerMembers returns the members of AcceptPlayerSession and RemovePlayerSession, for Go.
func PlayerMembers(gameSession, playerSession string) string {
	return `"GameSessionId":` + Text(gameSession) + `,"PlayerSessionId":` + Text(playerSession)
}

// SetPolicy opens or closes a game session to new players: ACCEPT_ALL or DENY_ALL.
func (c *Client) SetPolicy(ctx context.Context, gameSession, policy string) error {
	_, err := c.Do(ctx, "UpdatePlayerSessionCreationPolicy", `"GameSessionId":`+Text(gameSession)+`,"PlayerSessionPolicy":`+Text(policy))
	return err
}

// Terminate reports that the process is about to end.
func (c *Client) Terminate(ctx context.Context) error {
	_, err := c.Do(ctx, "TerminateServerProcess", "")
	return err
}

// PlayerQuery requests player sessions by one of the three ids.
type PlayerQuery struct {
	GameSessionId             string `json:",omitempty"`
	PlayerSessionId           string `json:",omitempty"`
	PlayerId                  string `json:",omitempty"`
	PlayerSessionStatusFilter string `json:",omitempty"`
	NextToken                 string `json:",omitempty"`
	Limit                     int    `json:",omitempty"`
}

// PlayerPage is one page of player sessions.
type PlayerPage struct {
	NextToken      string
	PlayerSessions []PlayerSession
}

// PlayerSession is a game server's view of a player session; TerminationTime is 0 while it is open.
type PlayerSession struct {
	PlayerId, PlayerSessionId, GameSessionId, FleetId string
	PlayerData, IpAddress, DnsName, Status            string
	Port                                              int
	CreationTime, TerminationTime                     int64
}

// DescribePlayers requests one page of player sessions.
func (c *Client) DescribePlayers(ctx context.Context, q PlayerQuery) (PlayerPage, error) {
	members, err := json.Marshal(q)
	if err != nil {
		return PlayerPage{}, err
	}
	a, err := c.Do(ctx, "DescribePlayerSessions", strings.Trim(string(members), "{}"))
	if err != nil {
		return PlayerPage{}, err
	}
	var page PlayerPage
	err = json.Unmarshal(a.Raw, &page)
	return page, err
}
