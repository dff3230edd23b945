package gamelift

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

func playersFromWire(wire []types.Player) ([]matchmaking.Player, error) {
	players := make([]matchmaking.Player, len(wire))
	for i := range wire {
		x := &wire[i]
		if x.PlayerId == nil {
			return nil, invalid("Players[%d].PlayerId: required", i)
		}
		if n := len(x.PlayerAttributes); n > ruleset.AttributesMax { // the model has no such bounds
			return nil, invalid("Players[%d].PlayerAttributes: %d attributes; at most %d are allowed", i, n, ruleset.AttributesMax)
		}
		p := &players[i]
		p.ID, p.Team = *x.PlayerId, value(x.Team)
		for _, name := range slices.Sorted(maps.Keys(x.PlayerAttributes)) {
			v, problem := attributeFromWire(x.PlayerAttributes[name])
			if problem != "" {
				return nil, invalid("Players[%d].PlayerAttributes[%s]: %s", i, excerpt.Short(name), problem)
			}
			p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: name, Value: v})
		}
		for _, region := range slices.Sorted(maps.Keys(x.LatencyInMs)) {
			p.Latencies = append(p.Latencies, matchmaking.Latency{Region: region, Milliseconds: x.LatencyInMs[region]})
		}
	}
	return players, nil
}

// attributeFromWire reads a value, of which exactly one member must be given.
func attributeFromWire(wire types.AttributeValue) (v ruleset.Value, problem string) {
	given := 0
	if wire.S != nil {
		v = ruleset.Value{Kind: ruleset.String, Text: *wire.S}
		given++
	}
	if wire.N != nil {
		v = ruleset.Value{Kind: ruleset.Number, Number: *wire.N}
		given++
	}
	if wire.SL != nil {
		v = ruleset.ListOf(wire.SL)
		given++
	}
	if wire.SDM != nil {
		v = ruleset.MapOf(wire.SDM)
		given++
	}
	switch {
	case given != 1:
		return v, "want exactly one of S, N, SL and SDM"
	case len(wire.SL) > ruleset.ListMax:
		return v, "SL has more than 100 strings"
	case len(wire.SDM) > ruleset.PairsMax:
		return v, "SDM has more than 10 pairs"
	}
	return v, ""
}

func playersToWire(players []matchmaking.Player) []types.Player {
	wire := make([]types.Player, len(players))
	for i := range players {
		p := &players[i]
		wire[i] = types.Player{PlayerId: &p.ID, Team: text(p.Team)}
		if len(p.Attributes) > 0 {
			wire[i].PlayerAttributes = make(map[string]types.AttributeValue, len(p.Attributes))
		}
		for j := range p.Attributes {
			wire[i].PlayerAttributes[p.Attributes[j].Name] = attributeToWire(&p.Attributes[j].Value)
		}
		if len(p.Latencies) > 0 {
			wire[i].LatencyInMs = make(map[string]int32, len(p.Latencies))
		}
		for _, l := range p.Latencies {
			wire[i].LatencyInMs[l.Region] = l.Milliseconds
		}
	}
	return wire
}

func attributeToWire(v *ruleset.Value) types.AttributeValue {
	switch v.Kind {
	case ruleset.String:
		return types.AttributeValue{S: &v.Text}
	case ruleset.Number:
		return types.AttributeValue{N: &v.Number}
	case ruleset.List:
		return types.AttributeValue{SL: append([]string{}, v.List...)}
	case ruleset.Map:
		pairs := make(map[string]float64, len(v.Map))
		for _, e := range v.Map {
			pairs[e.Key] = e.Number
		}
		return types.AttributeValue{SDM: pairs}
	default:
		return types.AttributeValue{}
	}
}
