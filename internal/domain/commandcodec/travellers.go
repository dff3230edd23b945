package commandcodec

import (
	"reflect"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// travellers are the commands that a node may send to the leader: those of clients, game servers and players. Commands that the leader
// issues itself (deadlines, matches, notices, its own data directory) do not travel.
var travellers = []kernel.Command{
	&access.CreateAccessKey{}, &access.RevokeAccessKey{}, &access.IssueJoinToken{}, &access.UseJoinToken{}, &access.VoidJoinTokens{},
	&access.IssueConsoleLink{}, &access.UseConsoleLink{}, &access.RevokeCredentials{}, &access.RotateAccessKey{}, &access.FinishRotation{}, &access.LimitAccessKey{}, &access.NoteKeyUses{},
	&access.PrepareSecret{}, &access.HoldSecret{}, &access.EndSecret{}, &access.NoteSecretUses{}, &access.NoteBackup{},
	&access.CreatePolicy{}, &access.UpdatePolicy{}, &access.DeletePolicy{}, &access.AttachPolicy{}, &access.DetachPolicy{},
	&gameservers.ClaimGameServer{}, &gameservers.CreateGameServerGroup{}, &gameservers.DeleteGameServerGroup{}, &gameservers.DeregisterGameServer{},
	&gameservers.RegisterGameServer{}, &gameservers.UpdateGameServer{}, &gameservers.UpdateGameServerGroup{},
	&membership.BeginNode{}, &notice.ConfirmSubscription{}, &notice.DeliverNotices{},
	&hosting.AcceptPlayer{}, &hosting.ActivateGameSession{}, &hosting.ActivateProcess{}, &hosting.AddFleetLocations{}, &hosting.ConnectProcess{},
	&hosting.CreateAlias{}, &hosting.CreateBuild{}, &hosting.CreateFleet{}, &hosting.CreateGameSession{}, &hosting.CreateLocation{},
	&hosting.CreateQueue{}, &hosting.DeleteAlias{}, &hosting.DeleteBuild{}, &hosting.DeleteFleet{}, &hosting.DeleteLocation{}, &hosting.DeleteQueue{}, &hosting.FinishBuild{},
	&hosting.DeleteScalingPolicy{}, &hosting.DeregisterCompute{}, &hosting.EndProcess{}, &hosting.InterruptCompute{}, &hosting.IssueToken{}, &hosting.LoseLink{},
	&hosting.PromptGameSession{}, &hosting.PutScalingPolicy{}, &hosting.RefreshProcess{}, &hosting.RegisterCompute{}, &hosting.ReleasePlayer{},
	&hosting.RemoveFleetLocations{}, &hosting.RemovePlayer{}, &hosting.ReportExit{}, &hosting.ReportHealth{}, &hosting.ReportLaunch{}, &hosting.ReservePlayers{}, &hosting.RotateToken{},
	&hosting.SetCapacity{}, &hosting.SetPlayerPolicy{}, &hosting.SettleProcess{}, &hosting.StartPlacement{}, &hosting.StopPlacement{},
	&hosting.SwitchScaling{}, &hosting.TerminateGameSession{}, &hosting.UpdateAlias{}, &hosting.UpdateBuild{}, &hosting.UpdateFleetAttributes{},
	&hosting.StartRollout{}, &hosting.UndoRollout{}, &hosting.UpdateGameSession{}, &hosting.UpdateQueue{}, &hosting.UpdateRuntime{},
	&grants.AskDevice{}, &grants.AnswerDevice{}, &grants.CollectDevice{}, &grants.UseCode{},
	&hosts.IssueToken{}, &hosts.RevokeToken{}, &hosts.Join{}, &hosts.Attach{}, &hosts.Describe{}, &hosts.Keep{}, &hosts.Leave{}, &hosts.Drain{}, &hosts.Revoke{},
	&people.StartSession{}, &people.RenewSession{}, &people.KeepRefresh{}, &people.EndSession{}, &people.EndSessionsOf{}, &people.NoteUses{}, &people.CreatePerson{}, &people.ChangePerson{},
	&people.RemovePerson{}, &people.IssueEnrolment{}, &people.AddPasskey{}, &people.RemovePasskey{}, &people.UsePasskey{},
	&matchmaking.AcceptMatch{}, &matchmaking.CreateConfiguration{}, &matchmaking.CreateRuleSet{}, &matchmaking.DeleteConfiguration{},
	&matchmaking.DeleteRuleSet{}, &matchmaking.StartMatchBackfill{}, &matchmaking.StartMatchmaking{}, &matchmaking.StopMatchmaking{},
	&matchmaking.TellHosted{}, &matchmaking.UpdateConfiguration{},
	&playerflow.AckEvents{}, &playerflow.AddMembers{}, &playerflow.AnnounceMaintenance{}, &playerflow.AnswerMatch{}, playerflow.Asked{},
	&playerflow.AttachStream{}, &playerflow.AwaitPlayers{}, &playerflow.BanPlayer{}, &playerflow.CancelInvite{}, &playerflow.ConnectMember{},
	&playerflow.CreateGameInstance{}, &playerflow.CreateParty{}, &playerflow.DecidePenalty{}, &playerflow.DeclineInvite{},
	&playerflow.DeclineReconnect{}, &playerflow.DisbandParty{}, &playerflow.DisconnectMember{}, &playerflow.EndGame{}, &playerflow.EnterBackfill{},
	&playerflow.EnterMatchmaking{}, &playerflow.ForceEnd{}, &playerflow.ForceLogout{}, &playerflow.ForceRelease{},
	&playerflow.GetHostConnectionDetails{}, &playerflow.IssueLoginTicket{}, &playerflow.JoinGameInstance{}, &playerflow.JoinParty{},
	&playerflow.KeepGameAlive{}, &playerflow.KickPlayer{}, &playerflow.LeaveBackfill{}, &playerflow.LeaveGame{}, &playerflow.LeaveMatchmaking{},
	&playerflow.LeaveParty{}, &playerflow.Login{}, &playerflow.Logout{}, &playerflow.LoseStream{}, &playerflow.MakeGame{}, &playerflow.PollEvents{},
	&playerflow.PromoteLeader{}, &playerflow.ReadyGame{}, &playerflow.RefreshLogin{}, &playerflow.ReleaseMembers{}, &playerflow.RemoveMembers{},
	&playerflow.RotateInviteCode{}, &playerflow.SendInvite{}, &playerflow.SetBlocks{}, &playerflow.SetFlowConfig{}, &playerflow.SetPartyPreferences{},
	&playerflow.SetPenalty{}, &playerflow.SetPlayerAttributes{}, &playerflow.SetPlayerPreferences{}, &playerflow.SetQueue{}, &playerflow.SetReady{},
	&playerflow.ShutDownParty{}, &playerflow.SubscribeEvents{}, &playerflow.TakeEvents{}, &playerflow.UnsubscribeEvents{}, &playerflow.UpdateGame{},
	&playerflow.UpdateOwnGame{},
	&cell.TagResource{}, &audit.Given{}, &audit.Note{}, &audit.NoteRefusals{}, &audit.Exported{},
}

var byName = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, cmd := range travellers {
		all[nameOf(reflect.TypeOf(cmd))] = reflect.TypeOf(cmd)
	}
	return all
}()
