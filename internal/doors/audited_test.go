package doors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Why commands have no entry in the audit log.
const (
	ofService  = "the service gives it by itself"
	ofServers  = "game servers give it all day"
	ofHosts    = "host agents give it all day"
	ofBackends = "backends and players give it all day"
	ofPlayers  = "players, trusted servers and game servers of player flow give it all day"
	ofAudit    = "it is the audit log"
	ofClients  = "sign-in clients give it before a person has agreed, or after that was recorded"
)

// unrecorded are the commands that the audit log does not describe, each with the reason.
var unrecorded = map[string]string{
	"audit.Exported":    ofAudit,
	"access.AcceptLoss": "at the start, which has an entry of its own", "access.TakeOverAccessKeys": ofService, "access.UseConsoleLink": "a sign-in changes nothing that outlasts it",
	"access.ActivateSecret": "a step of a rotation, whose beginning has an entry", "access.HoldSecret": "likewise", "access.EndOldSecrets": "the entry of the rotation has the date", "access.NoteSecretUses": ofService, "access.NoteBackup": "the backup has an entry",
	"access.NoteKeyUses": ofService, "access.VoidJoinTokens": "a part of the removal of a node, which has an entry", "answers.DropAnswers": ofService, "answers.Once": ofService, "answers.Void": ofService,
	"audit.Given": ofAudit, "audit.Note": ofAudit, "audit.NoteRefusals": ofAudit, "capacity.Plan": ofService, "capacity.ScaleFleet": ofService,
	"grants.AskDevice": ofClients, "grants.CollectDevice": ofClients, "grants.UseCode": ofClients,
	"gameservers.ClaimGameServer": ofBackends, "gameservers.DeregisterGameServer": ofServers, "gameservers.RegisterGameServer": ofServers, "gameservers.UpdateGameServer": ofServers,
	"hosting.AcceptPlayer": ofServers, "hosting.ActivateGameSession": ofServers, "hosting.ActivateProcess": ofServers, "hosting.ConnectProcess": ofServers,
	"hosting.CreateGameSession": ofBackends, "hosting.EndProcess": ofServers, "hosting.IssueToken": ofHosts, "hosting.LoseLink": ofService, "hosting.PromptGameSession": ofService,
	"hosting.RefreshProcess": ofService, "hosting.ReleasePlayer": ofBackends, "hosting.RemovePlayer": ofServers, "hosting.ReportExit": ofHosts, "hosting.ReportHealth": ofServers,
	"hosting.ReportLaunch": ofHosts, "hosting.ReservePlayers": ofBackends, "hosting.SetPlayerPolicy": ofServers, "hosting.SettleProcess": ofService,
	"hosting.StartPlacement": ofBackends, "hosting.StopPlacement": ofBackends, "hosting.UpdateGameSession": ofBackends,
	"hosts.Attach": ofHosts, "hosts.Describe": ofHosts, "hosts.Join": ofHosts, "hosts.Keep": ofHosts, "hosts.Leave": ofHosts,
	"kernel.Forget": ofService, "kernel.RaiseLevel": ofService, "kernel.Resume": ofService, "kernel.Tick": ofService,
	"matchmaking.AcceptMatch": ofBackends, "matchmaking.BeginSearch": ofService, "matchmaking.FailTickets": ofService, "matchmaking.ProposeMatches": ofService,
	"matchmaking.StartMatchBackfill": ofBackends, "matchmaking.StartMatchmaking": ofBackends, "matchmaking.StopMatchmaking": ofBackends, "matchmaking.TellHosted": ofService,
	"membership.BeginNode": ofService, "membership.LoseNode": ofService, "notice.ConfirmSubscription": "a webhook's receiver gives it", "notice.DeliverNotices": ofService,
	"people.KeepRefresh": ofService, "people.NoteUses": ofService, "people.UsePasskey": "StartSession follows, which has an entry",
	"playerflow.AckEvents": ofPlayers, "playerflow.AddMembers": ofPlayers, "playerflow.AnswerMatch": ofPlayers, "playerflow.Asked": "it wraps the command of a player",
	"playerflow.AttachStream": ofPlayers, "playerflow.AwaitPlayers": ofService, "playerflow.CancelInvite": ofPlayers, "playerflow.ConnectMember": ofPlayers,
	"playerflow.CreateGameInstance": ofPlayers, "playerflow.CreateParty": ofPlayers, "playerflow.DecidePenalty": ofService, "playerflow.DeclineInvite": ofPlayers,
	"playerflow.DeclineReconnect": ofPlayers, "playerflow.DisbandParty": ofPlayers, "playerflow.DisconnectMember": ofPlayers, "playerflow.EndGame": ofPlayers,
	"playerflow.EnterBackfill": ofPlayers, "playerflow.EnterMatchmaking": ofPlayers, "playerflow.GetHostConnectionDetails": ofPlayers, "playerflow.IssueLoginTicket": ofPlayers,
	"playerflow.JoinGameInstance": ofPlayers, "playerflow.JoinParty": ofPlayers, "playerflow.KeepGameAlive": ofPlayers, "playerflow.KickPlayer": ofPlayers,
	"playerflow.LeaveBackfill": ofPlayers, "playerflow.LeaveGame": ofPlayers, "playerflow.LeaveMatchmaking": ofPlayers, "playerflow.LeaveParty": ofPlayers, "playerflow.Login": ofPlayers,
	"playerflow.Logout": ofPlayers, "playerflow.LoseStream": ofPlayers, "playerflow.MakeGame": ofPlayers, "playerflow.PollEvents": ofPlayers, "playerflow.PromoteLeader": ofPlayers,
	"playerflow.ReadyGame": ofPlayers, "playerflow.RefreshLogin": ofPlayers, "playerflow.ReleaseMembers": ofPlayers, "playerflow.RemoveMembers": ofPlayers,
	"playerflow.RotateInviteCode": ofPlayers, "playerflow.SendInvite": ofPlayers, "playerflow.SetBlocks": ofPlayers, "playerflow.SetPartyPreferences": ofPlayers,
	"playerflow.SetPlayerAttributes": ofPlayers, "playerflow.SetPlayerPreferences": ofPlayers, "playerflow.SetReady": ofPlayers, "playerflow.SubscribeEvents": ofPlayers,
	"playerflow.TakeEvents": ofPlayers, "playerflow.UnsubscribeEvents": ofPlayers, "playerflow.UpdateGame": ofPlayers, "playerflow.UpdateOwnGame": ofPlayers,
}

// TestCommandsAreRecorded: the audit log says what each command is about, or this test has the reason why it does not record the command.
func TestCommandsAreRecorded(t *testing.T) {
	commands, described := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", "domain"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "Decide" {
					commands[typeName(file.Name.Name, n.Recv.List[0].Type)] = true
				}
			case *ast.CaseClause:
				for _, x := range n.List {
					if filepath.Base(path) == "audited.go" {
						described[typeName(file.Name.Name, x)] = true
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) < 150 || len(described) < 50 {
		t.Fatalf("found %d commands, of which %d are described: the test looks in the wrong place", len(commands), len(described))
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		switch why := unrecorded[name]; {
		case described[name] && why != "":
			t.Errorf("%s: Describe in internal/domain/cell/audited.go has it, and so has the list of commands without an entry", name)
		case !described[name] && why == "":
			t.Errorf("%s: the audit log does not say what it changes: add it to Describe in internal/domain/cell/audited.go and give it an origin at its door, or add it to the list here with the reason", name)
		}
	}
	for name := range unrecorded {
		if !commands[name] {
			t.Errorf("%s is on the list and is no command", name)
		}
	}
}

// typeName returns the name of a type, or of a pointer to it, with its package.
func typeName(of string, x ast.Expr) string {
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return x.X.(*ast.Ident).Name + "." + x.Sel.Name
	case *ast.Ident:
		return of + "." + x.Name
	}
	return ""
}
