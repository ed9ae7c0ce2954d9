package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// armError is ARM's and AKS's error, nested as deep as they like.
type armError struct {
	Code    string      `json:"code,omitempty"`
	Message string      `json:"message"`
	Target  string      `json:"target,omitempty"`
	Details []*armError `json:"details,omitempty"`
}

// armRefusal is the error of a call: one of the two shapes that there are.
type armRefusal struct {
	status  int
	bare    bool // AKS's own, without "error" around it
	subcode string
	headers map[string]string
	html    string
	armError
}

func (r *armRefusal) Error() string { return fmt.Sprint(r.status, " ", r.Code, ": ", r.Message) }

func plainError(code, format string, arguments ...any) *armError {
	return &armError{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

func armRefuse(status int, code, format string, arguments ...any) *armRefusal {
	return &armRefusal{status: status, armError: *plainError(code, format, arguments...)}
}

// aksRefuse is in AKS's own shape.
func aksRefuse(status int, code, format string, arguments ...any) *armRefusal {
	r := armRefuse(status, code, format, arguments...)
	r.bare = true
	return r
}

func (r *armRefusal) answer(w http.ResponseWriter) {
	for name, value := range r.headers {
		w.Header().Set(name, value)
	}
	if r.html != "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(r.status)
		io.WriteString(w, r.html)
		return
	}
	if !r.bare {
		w.Header().Set("x-ms-failure-cause", "gateway")
		answerJSON(w, r.status, map[string]any{"error": r.armError})
		return
	}
	body := map[string]any{"code": r.Code, "message": r.Message, "details": r.Details, "subcode": r.subcode}
	answerJSON(w, r.status, body)
}

func busy(what string) *armRefusal {
	return aksRefuse(http.StatusConflict, "OperationNotAllowed", "Operation is not allowed: Another operation (%s) is in "+
		"progress, please wait for it to finish before starting a new operation. See "+
		"https://aka.ms/aks-pending-operation for more details", what)
}

// launchError says why machines did not come. The code that matters is deep inside, or in the text only.
func (k *cloud) launchError(g *group, o *armOperation) *armError {
	code, zone := "AllocationFailed", g.conf.Zones[0]
	if g.conf.AKS.zonal {
		code = "ZonalAllocationFailed"
	}
	for _, r := range o.Refused {
		if r.Code == "quota" {
			code = "QuotaExceeded"
		}
		code, zone = or(r.Cause, code), or(r.Zone, zone)
	}
	inner := allocationError(g, code, zone)
	if uniform(k.seed, o.ID) < 0.5 {
		return &armError{Code: "ReconcileVMSSAgentPoolFailed", Message: "We are unable to serve this request due to an internal " +
			"error", Details: []*armError{{Code: "ReconcileVMSSAgentPoolFailed", Message: "Reconcile VMSS agent pool failed",
			Details: []*armError{inner}}}}
	}
	return &armError{Code: "ReconcileVMSSAgentPoolFailed",
		Message: fmt.Sprintf("Reconcile VMSS agent pool error: VMSSAgentPoolReconciler retry failed: Category: InternalError; "+
			"SubCode: VMSSCreateOrUpdateFailed; Dependency: Microsoft.Compute/VirtualMachineScaleSet; OrginalError: "+
			"Code=%q Message=%q; AKSTeam: NodeProvisioning", inner.Code, deepest(inner).Message)}
}

func deepest(e *armError) *armError {
	for len(e.Details) > 0 {
		e = e.Details[0]
	}
	return e
}

func allocationError(g *group, code, zone string) *armError {
	size, place := g.conf.InstanceType, g.conf.AKS.Location
	texts := map[string]string{
		"ZonalAllocationFailed": "Allocation failed. We do not have sufficient capacity for the requested VM size " + size +
			" in zone " + zone + ". Read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance",
		"AllocationFailed": "Allocation failed. If you are trying to add a new VM to a Virtual Machine Scale Set with a single " +
			"placement group or update/resize an existing VM in a Virtual Machine Scale Set with a single placement group, please " +
			"note that such allocation is scoped to a single cluster, and it is possible that the cluster is out of capacity.",
		"SkuNotAvailable": "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: " + size +
			"' is currently not available in location '" + place + "'. Please try another size or deploy to a different location " +
			"or different zone. See https://aka.ms/azureskunotavailable for details.",
		"OverconstrainedZonalAllocationRequest": "Allocation failed. VM(s) with the following constraints cannot be allocated, " +
			"because the condition is too restrictive. Please remove some constraints and try again. Constraints applied are:\n" +
			" - Networking Constraints (such as Accelerated Networking or IPv6)\n - Availability Zone\n - VM Size",
		"OverconstrainedAllocationRequest": "Allocation failed. VM(s) with the following constraints cannot be allocated, " +
			"because the condition is too restrictive. Please remove some constraints and try again. Constraints applied are:\n" +
			" - Differencing (Ephemeral) Disks\n - VM Size",
	}
	if code == "QuotaExceeded" {
		return &armError{Code: "QuotaExceeded", Message: "Preflight validation check for resource(s) failed.", Details: []*armError{
			plainError("OperationNotAllowed", "Operation could not be completed as it results in exceeding approved %s Family Cores "+
				"quota. Additional details - Deployment Model: Resource Manager, Location: %s, Current Limit: 10, Current Usage: 8, "+
				"Additional Required: 8, (Minimum) New Limit Required: 16.", strings.TrimPrefix(size, "Standard_"), place)}}
	}
	return plainError(code, "%s", or(texts[code], "Allocation failed."))
}

func deletionError(g *group, o *armOperation) *armError {
	e := &armError{Code: "DeleteMachinesFailed", Message: fmt.Sprintf("Failed to delete %d machines of agent pool %s",
		len(o.Spared), g.conf.AKS.Pool)}
	for _, name := range o.Spared {
		e.Details = append(e.Details, &armError{Code: "InternalServerError", Target: name,
			Message: "Delete of virtual machine " + name + " failed."})
	}
	return e
}
