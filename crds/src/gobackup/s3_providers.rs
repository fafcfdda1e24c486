//! Defaults of the services that speak S3: region, endpoint and storage class of each type, as gobackup has
//! them. `R` stands for the region, `A` for the account.

/// Defaults of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Value of `Storage.spec.type`.
    pub name: &'static str,
    region: &'static str,
    endpoint: &'static str,
    class: &'static str,
}

const fn provider(
    name: &'static str,
    region: &'static str,
    endpoint: &'static str,
    class: &'static str,
) -> Provider {
    Provider {
        name,
        region,
        endpoint,
        class,
    }
}

const ALL: &[Provider] = &[
    provider("s3", "us-east-1", "", "STANDARD_IA"),
    provider("b2", "us-east-001", "{R}.backblazeb2.com", "STANDARD"),
    provider("us3", "s3-cn-bj", "{R}.ufileos.com", "ARCHIVE"),
    provider("cos", "ap-nanjing", "cos.{R}.myqcloud.com", "STANDARD_IA"),
    provider("kodo", "cn-east-1", "s3-{R}.qiniucs.com", "LINE"),
    provider("r2", "us-east-1", "{A}.r2.cloudflarestorage.com", ""),
    provider("spaces", "nyc1", "{R}.digitaloceanspaces.com", "STANDARD"),
    provider("bos", "bj", "s3.{R}.bcebos.com", "STANDARD_IA"),
    provider("oss", "cn-hangzhou", "oss-{R}.aliyuncs.com", "STANDARD_IA"),
    provider("minio", "us-east-1", "", ""),
    provider(
        "obs",
        "cn-north-1",
        "obs.{R}.myhuaweicloud.com",
        "STANDARD_IA",
    ),
    provider("tos", "cn-beijing", "tos-s3-{R}.volces.com", "STANDARD_IA"),
    provider("upyun", "", "s3.api.upyun.com", ""),
];

/// The provider of a type, in lower case.
pub fn find(type_: &str) -> Option<Provider> {
    ALL.iter().copied().find(|f| f.name == type_)
}

impl Provider {
    /// Region where the Storage names none.
    pub fn region(self) -> &'static str {
        self.region
    }

    /// URL of the service where the Storage names none; `None` means AWS.
    pub fn endpoint(self, region: &str, account: &str) -> Option<String> {
        (!self.endpoint.is_empty()).then(|| {
            let host = self.endpoint.replace("{R}", region).replace("{A}", account);
            format!("https://{host}")
        })
    }

    /// Storage class where the Storage names none; `None` means the bucket's.
    pub fn storage_class(self) -> Option<String> {
        (!self.class.is_empty()).then(|| self.class.to_owned())
    }

    /// Path style is on but where the service refuses it.
    pub fn path_style(self) -> bool {
        !matches!(self.name, "oss" | "tos")
    }
}
