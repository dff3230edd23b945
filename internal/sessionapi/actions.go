package sessionapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/permit"
	"github.com/musterhq/muster/internal/policy"
)

// actions maps each node and each further call to its policy action. A node that does the same as an operation of the service API has the same action.
var actions = map[string]policy.Action{
	"ConfigureGameLiftClient": policy.MustBe("muster:Session.ConfigureGameLiftClient"),
	"CreatePlayerId":          policy.MustBe("muster:Session.CreatePlayerId"),
	"GetResourceNameId":       policy.MustBe("muster:Session.GetResourceNameId"),
	"CreateSession":           policy.MustBe("gamelift:CreateGameSession"),
	"CreateSessionOnQueue":    policy.MustBe("gamelift:StartGameSessionPlacement"),
	"SearchSessions":          policy.MustBe("gamelift:SearchGameSessions"),
	"JoinSession":             policy.MustBe("gamelift:CreatePlayerSession"),
	"LeaveSession":            policy.MustBe("gamelift:ReleasePlayerSession"),
	"StartMatchmaking":        policy.MustBe("gamelift:StartMatchmaking"),
	"StopMatchmaking":         policy.MustBe("gamelift:StopMatchmaking"),
	"AcceptMatch":             policy.MustBe("gamelift:AcceptMatch"),
	"StartPolling":            policy.MustBe("gamelift:DescribeMatchmaking"),
	"StopPolling":             policy.MustBe("muster:Session.StopPolling"),
	"placements":              policy.MustBe("gamelift:DescribeGameSessionPlacement"),
	"tickets":                 policy.MustBe("gamelift:DescribeMatchmaking"),
	"connected":               policy.MustBe("muster:Session.Connected"),
	callsName:                 policy.MustBe("muster:Session.Calls"),
	eventsName:                policy.MustBe("muster:Session.Events"),
}

// The calls that are not nodes.
const (
	callsName  = "calls"
	eventsName = "events"
)

// Actions returns the actions of this door that no other door has, with the roles that may take them.
func Actions() map[policy.Action]identity.Roles {
	return map[policy.Action]identity.Roles{
		actions["ConfigureGameLiftClient"]: identity.MayPlayOrLook, actions["CreatePlayerId"]: identity.MayPlayOrLook, actions["GetResourceNameId"]: identity.MayPlayOrLook,
		actions["StopPolling"]: identity.MayPlayOrLook, actions["connected"]: identity.MayPlay, actions[callsName]: identity.MayPlayOrLook, actions[eventsName]: identity.MayPlayOrLook,
	}
}

// mayDo checks a call with its input against the policies of the principal.
func (d *Door) mayDo(ctx context.Context, name string, req *request, in any) *Problem {
	if !req.principal.Restricted() {
		return nil
	}
	r := permit.Request{By: req.principal, Engine: d.engine}
	var err error
	switch x := in.(type) {
	case *createSessionRequest:
		nameFleet(&r, x.FleetID, x.AliasID)
	case *searchSessionsRequest:
		nameFleet(&r, x.FleetID, x.AliasID)
	case *createOnQueueRequest:
		r.Name(permit.Queue, lastPart(x.QueueName))
	case *joinSessionRequest:
		if id, invalid := gameSessionID(x.SessionID); invalid == nil {
			r.Name(permit.Fleet, id.Fleet())
		}
	case *leaveSessionRequest:
		err = r.PlayerSession(ctx, x.PlayerSessionID)
	case *startMatchmakingRequest:
		r.Name(permit.Configuration, lastPart(x.ConfigurationName))
	case *stopMatchmakingRequest: // also of StopPolling
		err = r.Ticket(ctx, x.TicketID)
	case *acceptMatchRequest:
		err = r.Ticket(ctx, x.TicketID)
	case *startPollingRequest:
		err = r.Ticket(ctx, x.TicketID)
	case *nothing:
		switch name {
		case placementNode.name:
			err = r.Placement(ctx, req.path)
		case ticketNode.name:
			err = r.Ticket(ctx, req.path)
		}
	}
	if err == nil {
		err = r.May(ctx, actions[name])
	}
	if denied, ok := errors.AsType[*identity.Denied](err); ok {
		return &Problem{status: http.StatusForbidden, Name: accessDenied, Message: denied.Error()}
	}
	if err != nil {
		return problemOf(err)
	}
	return nil
}

func nameFleet(r *permit.Request, fleetID, aliasID string) {
	if aliasID != "" {
		r.Name(permit.AliasTarget, lastPart(aliasID))
		return
	}
	r.Name(permit.Fleet, lastPart(fleetID))
}
