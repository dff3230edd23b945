package gamelift

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/permit"
	"github.com/musterhq/muster/internal/policy"
)

// reference is what a member of an input names: a kind of package permit, or one of those below, which leads to one.
type reference uint8

const (
	noReference            reference = 0
	fleetReference                   = reference(permit.Fleet)
	aliasReference                   = reference(permit.Alias)
	aliasTarget                      = reference(permit.AliasTarget)
	buildReference                   = reference(permit.Build)
	locationReference                = reference(permit.Location)
	queueReference                   = reference(permit.Queue)
	configurationReference           = reference(permit.Configuration)
	ruleSetReference                 = reference(permit.RuleSet)
	groupReference                   = reference(permit.GameServerGroup)
)

const (
	gameSessionReference reference = iota + 100
	playerSessionReference
	placementReference
	ticketReference
	taggedReference
	destinationReference // of a queue: a fleet, or an alias that stands for fleets
	queueARNReference    // of a configuration
)

// references maps members to the resources that they name, in all operations except those of otherReferences.
var references = map[string]reference{
	"FleetId": fleetReference, "FleetIds": fleetReference, "AliasId": aliasTarget, "BuildId": buildReference, "LocationName": locationReference,
	"GameSessionQueueName": queueReference, "ConfigurationName": configurationReference, "RuleSetName": ruleSetReference, "GameServerGroupName": groupReference,
	"GameSessionId": gameSessionReference, "GameSessionArn": gameSessionReference, "PlayerSessionId": playerSessionReference,
	"PlacementId": placementReference, "TicketId": ticketReference, "TicketIds": ticketReference, "ResourceARN": taggedReference,
	// The targets of aliases, queues and configurations. Without these, a key that may change one of them would reach every fleet.
	"RoutingStrategy": fleetReference, "Destinations": destinationReference, "GameSessionQueueArns": queueARNReference,
}

var otherReferences = map[string]map[string]reference{
	"CreateGameSession":         {"GameSessionId": noReference}, // the name of the new one
	"StartGameSessionPlacement": {"PlacementId": noReference},
	"StartMatchmaking":          {"TicketId": noReference},
	"StartMatchBackfill":        {"TicketId": noReference},
	"DescribeAlias":             {"AliasId": aliasReference},
	"UpdateAlias":               {"AliasId": aliasReference},
	"DeleteAlias":               {"AliasId": aliasReference},
	"ResolveAlias":              {"AliasId": aliasReference},
	"ListFleets":                {"BuildId": noReference}, // permission for lists is all or nothing

	"CreateGameSessionQueue":            {"Name": queueReference},
	"UpdateGameSessionQueue":            {"Name": queueReference},
	"DeleteGameSessionQueue":            {"Name": queueReference},
	"DescribeGameSessionQueues":         {"Names": queueReference},
	"CreateMatchmakingConfiguration":    {"Name": configurationReference},
	"UpdateMatchmakingConfiguration":    {"Name": configurationReference},
	"DeleteMatchmakingConfiguration":    {"Name": configurationReference},
	"DescribeMatchmakingConfigurations": {"Names": configurationReference, "RuleSetName": noReference}, // a filter, as in ListFleets
	"CreateMatchmakingRuleSet":          {"Name": ruleSetReference},
	"DeleteMatchmakingRuleSet":          {"Name": ruleSetReference},
	"DescribeMatchmakingRuleSets":       {"Names": ruleSetReference},
}

// newResources are the resources that operations create under an id that is not known in advance.
var newResources = map[string]string{"CreateFleet": "fleet", "CreateAlias": "alias", "CreateBuild": "build"}

// naming describes where an operation's input names resources.
type naming struct {
	action  policy.Action
	members []namingMember
	tags    int // index of the member with the tags of a request; -1: there is none
	made    string
}

type namingMember struct {
	field int
	as    reference
}

func newNaming(op *operation) naming {
	n := naming{action: policy.MustBe(actionPrefix + op.name), tags: -1, made: newResources[op.name]}
	for i := range op.input.NumField() {
		f := op.input.Field(i)
		as := references[f.Name]
		if other, ok := otherReferences[op.name][f.Name]; ok {
			as = other
		}
		if as != noReference {
			n.members = append(n.members, namingMember{i, as})
		}
		if f.Type == reflect.TypeFor[[]types.Tag]() {
			n.tags = i
		}
	}
	return n
}

// mayDo checks the caller's policies for an operation and all resources that its input names. The error is an *identity.Denied, or that of a look-up.
func mayDo(ctx context.Context, s *Service, op *compiled, caller *Caller, in any) error {
	n, input := &op.naming, reflect.ValueOf(in).Elem()
	r := permit.Request{By: &caller.Principal, Region: caller.Region, Engine: s.engine}
	if n.tags >= 0 {
		r.Tags = tagsFromWire(input.Field(n.tags).Interface().([]types.Tag))
	}
	if n.made != "" {
		r.New(n.made)
	}
	for _, m := range n.members {
		if err := name(ctx, s, &r, m.as, textsOf(input.Field(m.field))); err != nil {
			return err
		}
	}
	return r.May(ctx, n.action)
}

func textsOf(member reflect.Value) []string {
	switch x := member.Interface().(type) {
	case *string:
		if x != nil {
			return []string{*x}
		}
	case []string:
		return x
	case *types.RoutingStrategy:
		if x != nil && x.FleetId != nil {
			return []string{*x.FleetId}
		}
	case []types.GameSessionQueueDestination:
		texts := make([]string, 0, len(x))
		for _, d := range x {
			if d.DestinationArn != nil {
				texts = append(texts, *d.DestinationArn)
			}
		}
		return texts
	}
	return nil
}

// name adds the resources that a member names, interpreted as the operations do.
func name(ctx context.Context, s *Service, r *permit.Request, as reference, texts []string) (err error) {
	if as == ticketReference && len(texts) > ticketsDescribedMax {
		return invalid("TicketIds: %d ids; want 1 to %d", len(texts), ticketsDescribedMax)
	}
	for _, text := range texts {
		switch as {
		case gameSessionReference:
			err = nameGameSession(ctx, s, r, text)
		case playerSessionReference:
			err = r.PlayerSession(ctx, text)
		case placementReference:
			err = r.Placement(ctx, text)
		case ticketReference:
			err = r.Ticket(ctx, text)
		case taggedReference:
			nameTagged(r, text)
		case destinationReference, queueARNReference:
			nameTarget(r, as, text)
		default:
			r.Name(permit.Kind(as), lastPart(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func nameGameSession(ctx context.Context, s *Service, r *permit.Request, text string) error {
	id, err := s.gameSessionID(ctx, text)
	switch {
	case ignoreRefusal(err) != nil:
		return err
	case err != nil: // the operation reports the reason to callers who may ask about every resource
		r.Any()
	default:
		r.Name(permit.Fleet, id.Fleet())
	}
	return nil
}

// nameTarget interprets the target of a queue or a configuration as the core does: only the part after the last slash counts, even if the text is not
// an ARN.
func nameTarget(r *permit.Request, as reference, text string) {
	id := text[strings.LastIndexByte(text, '/')+1:]
	switch {
	case as == queueARNReference:
		r.Name(permit.Queue, id)
	case strings.HasPrefix(id, "alias-"):
		r.Name(permit.AliasTarget, id)
	default:
		r.Name(permit.Fleet, id)
	}
}

var taggedKinds = map[cell.ResourceKind]permit.Kind{
	cell.FleetResource: permit.Fleet, cell.LocationResource: permit.Location, cell.AliasResource: permit.Alias, cell.BuildResource: permit.Build,
	cell.GameServerGroupResource: permit.GameServerGroup, cell.QueueResource: permit.Queue, cell.RuleSetResource: permit.RuleSet,
	cell.ConfigurationResource: permit.Configuration, cell.ComputeResource: permit.Compute,
}

func nameTagged(r *permit.Request, arn string) {
	resource, err := tagged(arn)
	if err != nil {
		r.Any()
		return
	}
	r.Name(taggedKinds[resource.Kind], resource.ID)
}
