package cell

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// subjects tells the audit log which records commands are about.
type subjects struct{ c *Cell }

var _ audit.Hooks = (*subjects)(nil)

// Describe returns the record that a command changes, in its current state. It returns none for commands that are not listed here, or whose
// record says too little; the log then contains the command's parameters.
func (s *subjects) Describe(cmd kernel.Command) (kind, id string, record any) {
	v := s.c.View()
	switch x := kernel.Unwrapped(cmd).(type) {
	case *hosting.CreateFleet:
		return v.fleetSubject(x.Fleet.ID)
	case *hosting.UpdateFleetAttributes:
		return v.fleetSubject(x.ID)
	case *hosting.DeleteFleet:
		return v.fleetSubject(x.ID)
	case *hosting.AddFleetLocations:
		return v.fleetSubject(x.ID)
	case *hosting.RemoveFleetLocations:
		return v.fleetSubject(x.ID)
	case *hosting.SetCapacity:
		return v.fleetSubject(x.Fleet)
	case *hosting.SwitchScaling:
		return v.fleetSubject(x.Fleet)
	case *hosting.PutScalingPolicy:
		return v.fleetSubject(x.Fleet)
	case *hosting.DeleteScalingPolicy:
		return v.fleetSubject(x.Fleet)
	case *hosting.UpdateRuntime:
		return v.fleetSubject(x.Fleet)
	case *hosting.RegisterCompute:
		return v.computeSubject(x.Compute.FleetID, x.Compute.Name)
	case *hosting.DeregisterCompute:
		return v.computeSubject(x.Fleet, x.Name)
	case *hosting.InterruptCompute:
		return v.computeSubject(x.Fleet, x.Compute)
	case *hosting.RotateToken:
		return "compute", x.Fleet + "/" + x.Compute, nil
	case *hosting.TerminateGameSession:
		g, ok := v.GameSession(x.ID)
		return found("game session", string(x.ID), ok, struct{ Status string }{g.Status.String()})
	case *hosting.CreateAlias:
		return v.aliasSubject(x.Alias.ID)
	case *hosting.UpdateAlias:
		return v.aliasSubject(x.ID)
	case *hosting.DeleteAlias:
		return v.aliasSubject(x.ID)
	case *hosting.StartRollout:
		return "alias", v.aliasID(x.Alias), nil
	case *hosting.UndoRollout:
		return "alias", v.aliasID(x.Alias), nil
	case *hosting.CreateBuild:
		return v.buildSubject(x.Build.ID)
	case *hosting.UpdateBuild:
		return v.buildSubject(x.ID)
	case *hosting.FinishBuild:
		return v.buildSubject(x.ID)
	case *hosting.DeleteBuild:
		return v.buildSubject(x.ID)
	case *hosting.CreateLocation:
		l, ok := v.Location(x.Name)
		return found("location", x.Name, ok, l)
	case *hosting.DeleteLocation:
		l, ok := v.Location(x.Name)
		return found("location", x.Name, ok, l)
	}
	return v.otherSubject(kernel.Unwrapped(cmd))
}

// otherSubject is Describe for commands that are not about fleets or what runs on them.
func (v *View) otherSubject(cmd kernel.Command) (kind, id string, record any) {
	switch x := cmd.(type) {
	case *hosting.CreateQueue:
		return v.queueSubject(x.Queue.Name)
	case *hosting.UpdateQueue:
		return v.queueSubject(x.Name)
	case *hosting.DeleteQueue:
		return v.queueSubject(x.Name)
	case *matchmaking.CreateConfiguration:
		return v.configurationSubject(x.Configuration.Name)
	case *matchmaking.UpdateConfiguration:
		return v.configurationSubject(x.Name)
	case *matchmaking.DeleteConfiguration:
		return v.configurationSubject(x.Name)
	case *matchmaking.CreateRuleSet:
		return v.ruleSetSubject(x.RuleSet.Name)
	case *matchmaking.DeleteRuleSet:
		return v.ruleSetSubject(x.Name)
	case *gameservers.CreateGameServerGroup:
		return v.groupSubject(x.Group.Name)
	case *gameservers.UpdateGameServerGroup:
		return v.groupSubject(x.Name)
	case *gameservers.DeleteGameServerGroup:
		return v.groupSubject(x.Name)
	case *access.CreateAccessKey:
		return v.keySubject(x.Key.ID)
	case *access.RevokeAccessKey:
		return v.keySubject(x.ID)
	case *access.RotateAccessKey:
		return v.keySubject(x.ID)
	case *access.FinishRotation:
		return v.keySubject(x.ID)
	case *access.LimitAccessKey:
		return v.keySubject(x.ID)
	case *access.RevokeCredentials:
		if x.Certificate != "" {
			return "certificate", x.Certificate, nil
		}
		return "temporary credentials", cmp.Or(x.Session, x.Holder), nil
	case *access.PrepareSecret:
		return "secret", strconv.FormatUint(uint64(x.Number), 10), nil
	case *access.EndSecret:
		return "secret", strconv.FormatUint(uint64(x.Number), 10), nil
	case *access.CreatePolicy:
		return v.policySubject(x.Name)
	case *access.UpdatePolicy:
		return v.policySubject(x.Name)
	case *access.DeletePolicy:
		return v.policySubject(x.Name)
	case *access.AttachPolicy:
		return v.attachmentSubject(x.Target)
	case *access.DetachPolicy:
		return v.attachmentSubject(x.Target)
	case *access.IssueJoinToken:
		return "node token", x.ID, nil
	case *access.UseJoinToken:
		return "node", x.Node, nil
	case *grants.AnswerDevice:
		return "device", x.UserCode, nil
	case *access.IssueConsoleLink:
		return "access key", x.Key, nil
	case *people.StartSession:
		return v.signInSubject(x.SignIn.ID)
	case *people.RenewSession:
		return v.signInSubject(x.ID)
	case *people.EndSession:
		return v.signInSubject(x.ID)
	case *people.EndSessionsOf:
		return "sign-in sessions", cmp.Or(x.Holder, x.Provider+" session "+x.Sid), nil
	case *people.CreatePerson:
		return v.personSubject(x.Person.ID)
	case *people.ChangePerson:
		return v.personSubject(x.Person)
	case *people.RemovePerson:
		return v.personSubject(cmp.Or(x.ID, x.Person))
	case *people.IssueEnrolment:
		return v.personSubject(x.Person)
	case *people.AddPasskey:
		return v.personSubject(x.Person)
	case *people.RemovePasskey:
		return v.personSubject(x.Person)
	case *hosts.IssueToken:
		return "host token", x.ID, nil
	case *hosts.RevokeToken:
		return "host token", x.ID, nil
	case *hosts.Drain:
		return v.hostSubject(x.Host)
	case *hosts.Revoke:
		return v.hostSubject(x.Host)
	case *TagResource:
		return "tags", x.Resource.ID, nil
	case *playerflow.SetFlowConfig:
		return "player flow", "configuration", nil
	case *playerflow.AnnounceMaintenance:
		return "player flow", "maintenance", nil
	case *playerflow.SetQueue:
		return "player queue", x.Name, nil
	case *playerflow.BanPlayer:
		return "player", x.Player, nil
	case *playerflow.SetPenalty:
		return "player", x.Player, nil
	case *playerflow.ForceLogout:
		return "player", x.Player, nil
	case *playerflow.ForceRelease:
		return "player", x.Player, nil
	case *playerflow.ForceEnd:
		return "game instance", x.Instance.String(), nil
	case *playerflow.ShutDownParty:
		return "party", x.Party.String(), nil
	}
	return "", "", nil
}

// found returns a record if it exists.
func found[T any](kind, id string, ok bool, x T) (string, string, any) {
	if !ok {
		return kind, id, nil
	}
	return kind, id, &x
}

func (v *View) fleetSubject(id string) (string, string, any) {
	id = id[strings.LastIndexByte(id, '/')+1:]
	f, ok := v.Fleet(id)
	return found("fleet", id, ok, f)
}

func (v *View) computeSubject(fleetID, name string) (string, string, any) {
	x, ok := v.Compute(fleetID, name)
	return found("compute", fleetID+"/"+name, ok, x)
}

func (v *View) aliasSubject(id string) (string, string, any) {
	a, ok := v.Alias(id)
	return found("alias", id, ok, a)
}

// aliasID returns the id of an alias that a rollout names in another way.
func (v *View) aliasID(name string) string {
	if a, err := v.AliasNamed(name); err == nil {
		return a.ID
	}
	return name
}

func (v *View) buildSubject(id string) (string, string, any) {
	b, ok := v.Build(id)
	return found("build", id, ok, b)
}

func (v *View) queueSubject(name string) (string, string, any) {
	q, ok := v.Queue(name)
	return found("queue", name, ok, q)
}

func (v *View) configurationSubject(name string) (string, string, any) {
	c, ok := v.Configuration(name)
	return found("matchmaking configuration", name, ok, c)
}

func (v *View) ruleSetSubject(name string) (string, string, any) {
	x, ok := v.RuleSet(name)
	return found("rule set", name, ok, x)
}

func (v *View) groupSubject(name string) (string, string, any) {
	g, err := v.GameServerGroup(name)
	return found("game server group", name, err == nil, g)
}

func (v *View) hostSubject(name string) (string, string, any) {
	h, ok := v.HostNamed(name)
	return found("host", cmp.Or(h.ID, name), ok, h)
}

func (v *View) keySubject(id string) (string, string, any) {
	for _, k := range v.AccessKeys() {
		if k.ID == id {
			return found("access key", id, true, k)
		}
	}
	return "access key", id, nil
}

func (v *View) policySubject(name string) (string, string, any) {
	p, ok := v.Policy(name)
	if !ok {
		return "policy", name, nil
	}
	return "policy", name, &struct {
		Version      uint64
		Text, SHA256 string // because Text is truncated, and two texts may have the same beginning
	}{p.Version, p.Text, hex.EncodeToString(audit.Hash([]byte(p.Text)))}
}

// attachmentSubject describes a target with the names of its policies.
func (v *View) attachmentSubject(target access.Target) (string, string, any) {
	var names []string
	for _, a := range v.PolicyAttachments() {
		if a.Target == target {
			names = append(names, a.Policy)
		}
	}
	kind := target.Kind.String()
	if target.Kind == access.KeyTarget {
		kind = "access key"
	}
	return kind, target.Name, &struct{ Policies string }{strings.Join(names, ", ")}
}

func (v *View) signInSubject(id string) (string, string, any) {
	x, ok := v.SignIn(id)
	return found("sign-in session", id, ok, x)
}

func (v *View) personSubject(name string) (string, string, any) {
	x, ok := v.PersonNamed(name)
	return found("person", cmp.Or(x.ID, name), ok, x)
}
