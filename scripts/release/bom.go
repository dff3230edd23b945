package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes a bill of materials, CycloneDX in JSON, beside an artefact. It lists what the linker recorded in the artefact's binary, so the modules that are really inside and not those that
// go.mod mentions. It has no time and no random serial number.
func writeBill(artefact, revision string, info *buildinfo.BuildInfo) error {
	sum, err := digest(artefact)
	if err != nil {
		return err
	}
	f, err := os.Create(artefact + ".cdx.json")
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(describe(filepath.Base(artefact), revision, sum, info), cdx.SpecVersion1_6); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return f.Close()
}

// describe lists the Go standard library and every linked module.
func describe(name, revision, sum string, info *buildinfo.BuildInfo) *cdx.BOM {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: "main", Type: cdx.ComponentTypeApplication, Name: name, Version: revision,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}}
	version := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: "pkg:golang/stdlib@" + version, PackageURL: "pkg:golang/stdlib@" + version,
		Type: cdx.ComponentTypeLibrary, Name: "stdlib", Version: version,
	}}
	for _, module := range info.Deps {
		if isStandIn(module) {
			continue
		}
		components = append(components, component(module))
	}
	bom.Components = &components
	return bom
}

// isStandIn reports whether Muster's own code replaces a module, so that nothing of that module is linked.
func isStandIn(module *debug.Module) bool {
	return module.Replace != nil && strings.HasPrefix(module.Replace.Path, "./internal/")
}

func component(module *debug.Module) cdx.Component {
	// A replacement without a checksum is a directory of this repository. Users know such a module by its own path and version.
	if module.Replace != nil && module.Replace.Sum != "" {
		module = module.Replace
	}
	url := "pkg:golang/" + module.Path + "@" + module.Version
	c := cdx.Component{BOMRef: url, PackageURL: url, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version}
	// The module's checksum in go.sum: SHA-256 over its files, in base64 after "h1:".
	if sum, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
	}
	return c
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
