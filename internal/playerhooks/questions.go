package playerhooks

// The data of the hooks' requests. PlayerID is the player whose call causes the request.

type question interface{ asker() string }

func askerOf(q question) string {
	if q == nil {
		return ""
	}
	return q.asker()
}

func (q PartyMade) asker() string     { return q.PlayerID }
func (q PartyJoined) asker() string   { return q.PlayerID }
func (q PlayerInvited) asker() string { return q.PlayerID }
func (q Search) asker() string        { return q.PlayerID }
func (q Direct) asker() string        { return q.PlayerID }
func (q Update) asker() string        { return q.PlayerID }
func (q Penalty) asker() string       { return q.PlayerID }

// PartyMade is the question of BeforeCreateParty.
type PartyMade struct {
	PlayerID    string `json:"player_id"`
	Joinability string `json:"joinability,omitempty"` // as the player requests it; absent: the service's
	MaxMembers  int32  `json:"max_members,omitempty"`
	Attributes  Object `json:"attributes"`
}

// PartyJoined is the question of BeforeJoinParty.
type PartyJoined struct {
	PlayerID string   `json:"player_id"`
	PartyID  string   `json:"party_id"`
	By       string   `json:"by"` // ID, CODE or INVITE
	Members  []string `json:"members"`
}

// PlayerInvited is the question of BeforeInvite.
type PlayerInvited struct {
	PlayerID string `json:"player_id"`
	PartyID  string `json:"party_id"`
	TargetID string `json:"target_id"`
}

// Searcher is a player of a search, or of a game to be created.
type Searcher struct {
	PlayerID      string           `json:"player_id"`
	ClientVersion string           `json:"client_version,omitempty"`
	Attributes    Object           `json:"attributes"` // as the client has them
	Trusted       Object           `json:"trusted"`    // as the studio's backend has set them
	LatencyMS     map[string]int32 `json:"latency_ms"`
}

// Search is the question of BeforeEnterMatchmaking, ChooseRegions and, for a party that begins to search, BuildPlayerData.
type Search struct {
	PlayerID        string     `json:"player_id"`
	Purpose         string     `json:"purpose"`            // MATCHMAKING, CREATE, JOIN or RECONNECT
	PartyID         string     `json:"party_id,omitempty"` // absent: the player is alone
	Queue           string     `json:"queue,omitempty"`    // of matchmaking
	GameInstanceID  string     `json:"game_instance_id,omitempty"`
	Attributes      Object     `json:"attributes"` // of this search, as the client has them
	PartyAttributes Object     `json:"party_attributes"`
	Regions         []string   `json:"regions,omitempty"` // that the party prefers
	Players         []Searcher `json:"players"`
}

// Direct is the question of BeforeDirectJoin.
type Direct struct {
	PlayerID       string `json:"player_id"`
	Action         string `json:"action"` // CREATE or JOIN
	GameInstanceID string `json:"game_instance_id"`
	Code           string `json:"code,omitempty"` // as the player typed it; only the studio knows its meaning
	MaxPlayers     int32  `json:"max_players,omitempty"`
	Attributes     Object `json:"attributes"`
}

// Update is the question of BeforePlayerUpdate.
type Update struct {
	PlayerID       string `json:"player_id"`
	GameInstanceID string `json:"game_instance_id"`
	Attributes     Object `json:"attributes"`
}

// Penalty is the request of DecidePenalty: the service's own decision.
type Penalty struct {
	PlayerID       string `json:"player_id"`
	Kind           string `json:"kind"` // DODGE, LEAVE or AFK
	Level          int32  `json:"level"`
	Since          string `json:"since"`
	Until          string `json:"until,omitempty"` // absent: a warning
	Reason         string `json:"reason"`
	GameInstanceID string `json:"game_instance_id,omitempty"`
}
