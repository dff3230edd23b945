package sdk

import (
	"flag"
	"os"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"google.golang.org/protobuf/types/pluginpb"

	"google.golang.org/protobuf/reflect/protodesc"
)

//go:generate go test -run TestGenerated -update .

var update = flag.Bool("update", false, "write sdk.pb.go")

// TestGenerated compares sdk.pb.go with what sdk.proto generates, without a protoc on the machine.
func TestGenerated(t *testing.T) {
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{}), SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := compiler.Compile(t.Context(), "sdk.proto")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{"sdk.proto"}, Parameter: new(string),
		ProtoFile: []*descriptorpb.FileDescriptorProto{
			protodesc.ToFileDescriptorProto(fieldmaskpb.File_google_protobuf_field_mask_proto), protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
			protoutil.ProtoFromFileDescriptor(files[0]),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	internal_gengo.GenerateFile(plugin, plugin.FilesByPath["sdk.proto"])
	generated := plugin.Response().GetFile()[0].GetContent()
	if *update {
		if err := os.WriteFile("sdk.pb.go", []byte(generated), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if present, err := os.ReadFile("sdk.pb.go"); err != nil || string(present) != generated {
		t.Errorf("sdk.pb.go is not what sdk.proto generates (%v): run make generate", err)
	}
}
