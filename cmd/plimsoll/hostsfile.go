package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/input"
)

// maxHostsFile is the most bytes of a file of hosts that are read.
const maxHostsFile = 1 << 20

// readHosts reads a file of hosts: the mapping "hosts" of names to what --host has
// behind the "=". It returns them as --host values, in the file's order.
func readHosts(path string) ([]string, error) {
	raw, err := input.Read(path, maxHostsFile)
	if err != nil {
		return nil, fmt.Errorf("--hosts %s: %w", path, err)
	}
	var file struct {
		Hosts yaml.Node `yaml:"hosts"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("--hosts %s: want YAML: %w", path, err)
	}
	if file.Hosts.Kind != yaml.MappingNode || len(file.Hosts.Content) == 0 {
		return nil, fmt.Errorf(`--hosts %s: want "hosts:" and beneath it a line "NAME: SPEC" for each, like "web: ssh:deploy@web1"`, path)
	}
	var values []string
	for i := 0; i < len(file.Hosts.Content); i += 2 {
		name, spec := file.Hosts.Content[i], file.Hosts.Content[i+1]
		if name.Kind != yaml.ScalarNode || spec.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("--hosts %s: line %d: want NAME: SPEC", path, name.Line)
		}
		values = append(values, name.Value+"="+spec.Value)
	}
	return values, nil
}
