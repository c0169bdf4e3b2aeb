package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationvalidation "k8s.io/kubernetes/pkg/apis/coordination/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulingvalidation "k8s.io/kubernetes/pkg/apis/scheduling/validation"
	"k8s.io/kubernetes/pkg/apis/storage"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"
)

// What kube-apiserver's validation says about an object with defaults; nil: no such kind here.
func causes(object runtime.Object) []map[string]string {
	list := validate(object)
	out := []map[string]string{}
	for _, e := range list {
		out = append(out, map[string]string{"field": e.Field, "reason": string(e.Type), "message": e.ErrorBody()})
	}
	return out
}

func validate(object runtime.Object) field.ErrorList {
	pod := corevalidation.PodValidationOptions{}
	switch o := object.(type) {
	case *core.Pod:
		return corevalidation.ValidatePodCreate(o, pod)
	case *core.Service:
		return corevalidation.ValidateServiceCreate(o)
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *core.Secret:
		return corevalidation.ValidateSecret(o)
	case *core.Node:
		return corevalidation.ValidateNode(o)
	case *core.PersistentVolumeClaim:
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.ValidationOptionsForPersistentVolumeClaimCreate())
	case *core.PersistentVolume:
		return corevalidation.ValidatePersistentVolume(o, corevalidation.ValidationOptionsForPersistentVolume(o, nil))
	case *core.ReplicationController:
		return corevalidation.ValidateReplicationController(o, pod)
	case *core.ResourceQuota:
		return corevalidation.ValidateResourceQuota(o)
	case *core.LimitRange:
		return corevalidation.ValidateLimitRange(o)
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, pod)
	case *apps.ReplicaSet:
		return appsvalidation.ValidateReplicaSet(o, pod)
	case *apps.DaemonSet:
		return appsvalidation.ValidateDaemonSet(o, pod)
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, pod)
	case *batch.Job:
		return batchvalidation.ValidateJob(o, batchvalidation.JobValidationOptions{})
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *scheduling.PriorityClass:
		return schedulingvalidation.ValidatePriorityClass(o)
	case *storage.StorageClass:
		return storagevalidation.ValidateStorageClass(o)
	case *coordination.Lease:
		return coordinationvalidation.ValidateLease(o)
	case *rbac.Role:
		return rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		return rbacvalidation.ValidateRoleBinding(o)
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	}
	panic(fmt.Sprintf("no validation for %T", object))
}
