package flow

// Actions is a set of the actions that a player may take now.
type Actions uint64

// The actions, named as the calls of the player API.
const (
	CanCreateParty Actions = 1 << iota
	CanJoinParty
	CanSendInvite
	CanLeaveParty
	CanKickPlayer
	CanPromoteLeader
	CanSetReady
	CanSetPartyPreferences
	CanSetPlayerPreferences
	CanRotateInviteCode
	CanDisbandParty
	CanEnterMatchmaking
	CanLeaveMatchmaking
	CanAcceptMatch
	CanGetHostConnectionDetails
	CanDeclineReconnect
	CanLeaveGame
	CanCreateGameInstance
	CanJoinGameInstance
	CanRespondToInvite
	CanLogout
)

var actionNames = [...]string{
	"CreateParty", "JoinParty", "SendInvite", "LeaveParty", "KickPlayer", "PromoteLeader", "SetReady", "SetPartyPreferences",
	"SetPlayerPreferences", "RotateInviteCode", "DisbandParty", "EnterMatchmaking", "LeaveMatchmaking", "AcceptMatch",
	"GetHostConnectionDetails", "DeclineReconnect", "LeaveGame", "CreateGameInstance", "JoinGameInstance", "RespondToInvite", "Logout",
}

// Names lists the actions as the player API names them.
func (a Actions) Names() []string {
	names := make([]string, 0, 8)
	for i, name := range actionNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
